"""Rollouts on the live graph: groups, partner draws, what is stored and what is not, what is counted."""

import asyncio

import pytest
from collabsim.trainers.groups import assemble
from collabsim.trainers.objectives import parse_objective
from collabsim.trainers.partner_noise import check_noise, default_noise, visit_seed
from collabsim.trainers.records import Outcome, Visit
from collabsim.trainers.rollouts import RolloutPlan, check_plan, collect
from langgraph.graph import START, StateGraph
from scripted import Scripted
from tabular import Noisy, Tabular

from collabsim import GenerationStore, Pool, Sampling, Seat, State, System, ask, make_item, share
from collabsim.episode import Reply, RunError, Tokens
from collabsim.errors import CallError, ConfigError
from collabsim.seeds import call_seed

ITEM = make_item("What is 2 + 3?", "5")
OTHER = make_item("What is 1 + 3?", "4")
COIN = {"Answer: 5": 0.5, "Answer: 4": 0.5}
FULL = Sampling(temperature=1.0, max_tokens=4)


def vote(partners=2, store=None, **models):
    pool = {"me": Seat("me", Scripted("me", "unused"), sampling=FULL)}
    pool |= {f"p{k}": models.get(f"p{k}", Noisy(f"p{k}", COIN)) for k in range(partners)}
    return System("majority_vote", pool, store=store or GenerationStore(None))


def learner(**settings):
    return Tabular(["5", "4"], prompts=4, **settings)


def plan(**settings):
    standard = {"objective": parse_objective("system"), "group": 6, "noise": "shared", "draws": 4}
    return RolloutPlan("me", **{**standard, **settings})


def partner_requests(system):
    return [request for name in system.pool if name != "me" for request in system.pool[name].model.asked]


async def test_a_group_has_one_run_for_each_sample_with_its_reward_and_rows():
    model = learner()
    (group,) = await collect(vote(), model, [Visit(ITEM, 0)], plan())
    assert len(group.runs) == 6
    assert {run.reward for run in group.runs} <= {0.0, 0.5, 1.0}
    assert all(len(run.rows) == 1 for run in group.runs)
    assert len({request.seed for request in model.asked}) == 6


async def test_rows_hold_the_ids_and_log_probabilities_that_were_sampled():
    model = learner()
    (group,) = await collect(vote(), model, [Visit(ITEM, 0)], plan())
    for run in group.runs:
        (row,) = run.rows
        again = model.token_logprobs([row.tokens], row.temperature)[0].tolist()
        assert row.logprobs == pytest.approx(again)
        assert row.finish == ("stop" if row.tokens.ids[-1] == 2 else "length")


async def test_shared_noise_generates_each_partner_once_for_the_whole_group():
    system = vote()
    (group,) = await collect(system, learner(), [Visit(ITEM, 0)], plan(noise="shared"))
    assert len(partner_requests(system)) == group.counts.partner_generations == 2
    assert group.counts.partner_calls == 12


async def test_independent_noise_gives_every_run_its_own_partners():
    system = vote()
    await collect(system, learner(), [Visit(ITEM, 0)], plan(noise="independent"))
    assert len({request.seed for request in partner_requests(system)}) == 12


async def test_crossed_noise_scores_every_sample_against_all_partner_draws_and_generates_it_once():
    system, model = vote(), learner()
    (group,) = await collect(system, model, [Visit(ITEM, 0)], plan(noise="crossed"))
    assert len(model.asked) == group.counts.learner_calls == 6
    assert len(partner_requests(system)) == 8
    assert group.counts.runs == 24
    assert len(group.runs) == 6


async def test_the_crossed_reward_is_the_mean_over_the_partner_draws():
    first_draw = call_seed(visit_seed(0, 0), ITEM.id, "p1", 0, 0)
    turncoat = Scripted("p1", lambda request: f"Answer: {5 if request.seed == first_draw else 4}")
    system, model = vote(p0=Scripted("p0", "Answer: 5"), p1=turncoat), learner()
    (group,) = await collect(system, model, [Visit(ITEM, 0)], plan(noise="crossed", group=24))
    # 5 wins always; 4 loses but for the first draw; an empty reply leaves a tie in the other three
    worth = {(0, 2): 1.0, (1, 2): 0.25, (2,): 0.625}
    found = {run.rows[0].tokens.ids: run.reward for run in group.runs}
    assert {ids: found[ids] for ids in worth} == worth


async def test_the_learner_is_never_served_from_the_store_nor_written_to_it(tmp_path):
    with GenerationStore(tmp_path / "g.sqlite") as store:
        system, model = vote(store=store), learner()
        for _ in range(2):
            await collect(system, model, [Visit(ITEM, 0)], plan())
        assert len(model.asked) == 12
        assert len(partner_requests(system)) == store.generated == 2


async def test_a_later_visit_meets_other_partner_samples_and_other_seeds_of_the_learner():
    system, model = vote(), learner()
    await collect(system, model, [Visit(ITEM, 0)], plan())
    await collect(system, model, [Visit(ITEM, 1)], plan())
    assert len({request.seed for request in model.asked}) == 12
    assert len(partner_requests(system)) == 4


async def test_the_same_visit_again_gives_the_same_rollout():
    first = await collect(vote(), learner(), [Visit(ITEM, 3)], plan())
    second = await collect(vote(), learner(), [Visit(ITEM, 3)], plan())
    assert [group.runs for group in first] == [group.runs for group in second]


async def test_leave_one_out_subtracts_the_value_without_the_learner_which_system_never_needs():
    visits = [Visit(ITEM, 0), Visit(OTHER, 0)]
    system = await collect(vote(), learner(), visits, plan())
    without = await collect(vote(), learner(), visits, plan(objective=parse_objective("leave_one_out")))
    assert [group.counts.without_learner for group in system] == [0, 0]
    assert [group.counts.without_learner for group in without] == [1, 1]
    for plain, less in zip(system, without, strict=True):
        levels = {run.reward - other.reward for run, other in zip(plain.runs, less.runs, strict=True)}
        assert len(levels) == 1


async def test_the_individual_objective_asks_no_partner():
    system = vote()
    (group,) = await collect(system, learner(), [Visit(ITEM, 0)], plan(objective=parse_objective("individual")))
    assert partner_requests(system) == []
    assert {run.reward for run in group.runs} <= {0.0, 1.0}


async def test_a_mixture_makes_a_group_for_each_term_and_generates_a_shared_sample_once():
    model = learner()
    mixture = parse_objective({"individual": 0.25, "system": 0.75})
    groups = await collect(vote(), model, [Visit(ITEM, 0)], plan(objective=mixture))
    assert [(group.id.term, group.weight) for group in groups] == [("system", 0.75), ("individual", 0.25)]
    assert len(model.asked) == 6
    assert [run.rows for run in groups[0].runs] == [run.rows for run in groups[1].runs]


async def test_a_failed_run_has_no_reward_and_no_row():
    broken = Scripted("p0", lambda request: CallError("no connection"))
    (group,) = await collect(vote(p0=broken), learner(), [Visit(ITEM, 0)], plan())
    assert [run.reward for run in group.runs] == [None] * 6
    assert all(run.rows == () and run.error.kind == "CallError" for run in group.runs)
    assert group.counts.failed == 6


async def test_a_partner_draw_that_fails_leaves_the_others():
    first_draw = call_seed(visit_seed(0, 0), ITEM.id, "p0", 0, 0)
    busy = Scripted("p0", lambda request: CallError("busy") if request.seed == first_draw else "Answer: 5")
    (group,) = await collect(vote(p0=busy), learner(), [Visit(ITEM, 0)], plan(noise="crossed"))
    assert group.counts.failed == 6
    assert all(run.reward is not None for run in group.runs)


def test_a_partner_draw_that_failed_for_one_sample_is_left_out_for_all():
    made = [Outcome(0, 0, 1.0, (), None), Outcome(0, 1, 0.0, (), None), Outcome(1, 0, 0.0, (), None)]
    failed = Outcome(1, 1, None, (), RunError("CallError", "busy"))
    runs = assemble([*made, failed], 2, {0: 0.0, 1: 0.0})
    assert [run.reward for run in runs] == [1.0, 0.0]


def test_a_sample_that_failed_under_every_draw_is_missing_and_takes_no_draw_from_the_others():
    lost = [Outcome(0, draw, None, (), RunError("CallError", "busy")) for draw in (0, 1)]
    kept = [Outcome(sample, draw, float(draw), (), None) for sample in (1, 2) for draw in (0, 1)]
    assert [run.reward for run in assemble([*lost, *kept], 3, {0: 0.0, 1: 0.0})] == [None, 0.5, 0.5]


def test_a_value_without_the_learner_that_failed_takes_its_draw_out():
    made = [Outcome(sample, draw, 1.0 * sample, (), None) for sample in (0, 1) for draw in (0, 1)]
    assert [run.reward for run in assemble(made, 2, {0: None, 1: 0.25})] == [-0.25, 0.75]


async def test_a_learner_that_the_router_never_picks_gives_no_row():
    pool = {"me": Seat("me", Scripted("me", "x"), sampling=FULL), "p0": Noisy("p0", COIN)}
    helpers = Pool({"guide": Scripted("guide", lambda request: _number_of("p0", request))})
    system = System("prompt_router", pool, helpers=helpers, roles={"router": "guide"})
    (group,) = await collect(system, learner(), [Visit(ITEM, 0)], plan())
    assert all(run.rows == () and run.reward is not None for run in group.runs)
    assert group.counts.learner_calls == 0


def _number_of(seat, request):
    lines = request.messages[-1].content.splitlines()
    return next(line.partition(".")[0] for line in lines if line.endswith(f". {seat}"))


async def test_outvoted_and_truncated_replies_are_counted():
    system = vote(p0=Scripted("p0", "Answer: 9"), p1=Scripted("p1", "Answer: 9"))
    (group,) = await collect(system, learner(), [Visit(ITEM, 0)], plan(group=8))
    finishes = [row.finish for run in group.runs for row in run.rows]
    assert group.counts.outvoted == 8
    assert group.counts.truncated == finishes.count("length")
    assert {run.reward for run in group.runs} == {0.0}


async def test_the_coalition_of_the_shapley_rule_is_one_for_the_group_and_holds_the_learner():
    system, model = vote(partners=3), learner()
    sizes = set()
    for number in range(24):
        before = len(partner_requests(system))
        (group,) = await collect(system, model, [Visit(ITEM, number)], plan(group=2, coalition="shapley"))
        sizes.add(len(partner_requests(system)) - before)
        assert all(len(run.rows) == 1 for run in group.runs)
    assert sizes == {0, 1, 2, 3}


@pytest.mark.parametrize("sampling", [Sampling(temperature=0), Sampling(top_p=0.9), Sampling(top_k=5)])
async def test_a_seat_that_does_not_sample_from_its_full_distribution_is_refused(sampling):
    system = vote()
    system = System("majority_vote", {**system.pool, "me": Seat("me", Scripted("me", "x"), sampling=sampling)})
    with pytest.raises(ConfigError, match="full distribution"):
        await collect(system, learner(), [Visit(ITEM, 0)], plan())


async def test_a_protocol_that_narrows_the_learners_sampling_is_refused():
    def greedy(seats):
        graph = StateGraph(State)

        async def answer(state, runtime):
            reply = await ask(runtime, "me", "2 + 3?", temperature=0.0)
            return {"final": share([reply])}

        graph.add_node("answer", answer)
        graph.add_edge(START, "answer")
        return graph

    system = System(greedy, {"me": Seat("me", Scripted("me", "x"), sampling=FULL)})
    said = Reply("5", tokens=Tokens((0,), (0,), (-1.0,)))
    with pytest.raises(ConfigError, match="full distribution"):
        await collect(system, Scripted("model", said), [Visit(ITEM, 0)], plan())


class InStep(Tabular):
    """Replies only once four calls are under way at once."""

    def __init__(self):
        super().__init__(["5", "4"], prompts=4)
        self.under_way = 0
        self.enough = asyncio.Event()

    async def areply(self, request):
        self.under_way += 1
        if self.under_way == 4:
            self.enough.set()
        await self.enough.wait()
        return await super().areply(request)


async def test_crossed_runs_of_one_sample_count_once_towards_concurrency():
    work = collect(vote(), InStep(), [Visit(ITEM, 0)], plan(group=4, noise="crossed"), concurrency=4)
    (group,) = await asyncio.wait_for(work, 60)
    assert group.counts.runs == 4 * 4


async def test_a_reply_without_tokens_fails_its_run():
    (group,) = await collect(vote(), Scripted("text only", Reply("Answer: 5")), [Visit(ITEM, 0)], plan())
    assert group.runs[0].error.kind == "CallError"
    assert "prompt ids" in group.runs[0].error.message


async def test_crossing_a_learner_that_reads_its_partners_is_refused():
    system = System("mixture_of_agents", vote().pool, roles={"aggregator": "me"})
    assert default_noise(system, "me") == "shared"
    with pytest.raises(ConfigError, match="reads what its partners said"):
        check_noise("crossed", system, "me")
    with pytest.raises(ConfigError, match="crossed needs"):
        await collect(system, learner(), [Visit(ITEM, 0)], plan(noise="crossed"))


def test_a_vote_is_crossed_and_a_debate_is_shared_by_default():
    assert default_noise(vote(), "me") == "crossed"
    assert default_noise(System("debate", vote().pool), "me") == "shared"


def test_a_helper_can_be_trained_for_the_system_but_has_no_individual_objective():
    pool = {f"p{k}": Noisy(f"p{k}", COIN) for k in range(2)}
    system = System("prompt_router", pool, helpers={"me": Scripted("me", "x")}, roles={"router": "me"})
    check_plan(plan(), system)
    assert default_noise(system, "me") == "shared"
    check_noise("crossed", system, "me")
    with pytest.raises(ConfigError, match="is a helper"):
        check_plan(plan(objective=parse_objective("individual")), system)


def test_an_unknown_learner_is_refused():
    with pytest.raises(ConfigError, match="no seat 'you'"):
        check_plan(RolloutPlan("you", parse_objective("system"), 2, "shared"), vote())
