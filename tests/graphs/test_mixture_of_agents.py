"""What the aggregator of a mixture reads, and when it is called."""

from scripted import Scripted, last_words

from collabsim import Pool, System, make_item

ITEM = make_item("What is 2 + 3?", "5")


def mixture(members, aggregator="Answer: 5", **options):
    helpers = Pool({"merge": Scripted("merge", aggregator)})
    pool = {name: Scripted(name, said) for name, said in members.items()}
    return System("mixture_of_agents", pool, helpers=helpers, roles={"aggregator": "merge"}, options=options)


def read_by_aggregator(system):
    return [last_words(request) for request in system.helpers["merge"].model.asked]


async def test_the_aggregator_reads_all_proposals_and_writes_the_final_output():
    system = mixture({"a": "Answer: 4", "b": "Answer: 3"})
    assert (await system.arun(ITEM)).outcome == 1.0
    (shown,) = read_by_aggregator(system)
    assert "Answer: 4" in shown
    assert "Answer: 3" in shown
    assert ITEM.question in shown


async def test_a_single_proposer_answers_by_itself():
    system = mixture({"a": "Answer: 4", "b": "Answer: 3"})
    assert (await system.arun(ITEM, ["a"])).outcome == 0.0
    assert read_by_aggregator(system) == []


async def test_proposals_without_an_answer_are_left_out():
    system = mixture({"a": "Answer: 4", "b": "no idea", "c": "Answer: 3"})
    await system.arun(ITEM)
    assert "no idea" not in read_by_aggregator(system)[0]


async def test_a_single_answer_among_the_proposals_is_final_and_nobody_aggregates():
    system = mixture({"a": "Answer: 4", "b": "no idea"}, layers=2)
    episode = await system.arun(ITEM)
    assert [output.text for output in episode.final] == ["Answer: 4"]
    assert (len(episode.calls), read_by_aggregator(system)) == (2, [])


async def test_without_any_proposal_nobody_aggregates_and_the_run_scores_zero():
    system = mixture({"a": "hm", "b": "hm"})
    episode = await system.arun(ITEM)
    assert (episode.outcome, read_by_aggregator(system)) == (0.0, [])


async def test_every_layer_reads_the_one_before():
    system = mixture({"a": lambda request: f"Answer: {10 + request.draw}", "b": "Answer: 3"}, layers=3)
    await system.arun(ITEM)
    assert "Answer: 12" in read_by_aggregator(system)[0]
    assert "Answer: 11" not in read_by_aggregator(system)[0]


async def test_an_aggregator_that_is_a_seat_keeps_its_proposal_and_its_merge_apart():
    seat = Scripted("a", lambda request: "Answer: 5" if request.draw else "Answer: 4")
    system = System("mixture_of_agents", {"a": seat, "b": Scripted("b", "Answer: 3")}, roles={"aggregator": "a"})
    assert (await system.arun(ITEM)).outcome == 1.0
    assert sorted(request.draw for request in seat.asked) == [0, 1]
