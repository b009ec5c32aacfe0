"""The Python interface, cell by cell: a script, and a notebook in editors that know `# %%`. Nothing is kept on disk."""

# %% A pool: seat names and LangChain chat models. These are simulated; any `BaseChatModel` may stand in their place.
from collabsim import Pool, Sampling, Seat, SimulatedModel, System, load_task, sweep

pool = Pool(
    novice=SimulatedModel(skill=-0.5, conformity=0.5),
    steady=SimulatedModel(skill=0.5, conformity=0.2),
    expert=Seat("expert", SimulatedModel(skill=1.5), sampling=Sampling(temperature=0.2), system="Be brief."),
)

# %% A task, and a system: a protocol over a pool.
task = load_task("reasoning_gym:chain_sum", options={"min_terms": 2, "max_terms": 3}, limit=30, seed=1)
system = System("debate", pool, options={"rounds": 2})

# %% One run, with everybody and with two of the three. A run is an `Episode`: outcome, calls, tokens, error.
system.study(task.items)  # hands simulated models the answers they are to know; real models have no need of it
item = task.items[0]
for present in (pool.seats, ("novice", "expert")):
    episode = system.run(item, present)
    spoken = sum(call.usage.completion_tokens for call in episode.calls)
    print(f"{' + '.join(present):<24} outcome {episode.outcome:.2f}, {len(episode.calls)} calls, {spoken} tokens")

# %% Every coalition on every item. In async code: `await asweep(...)`.
result = sweep(system, task, method="exact", seed=0)
print(result)
for name, estimate in result.shapley.items():
    low, high = estimate.interval
    print(f"{name:<8} is worth {estimate.value:.3f} [{low:.3f}, {high:.3f}]")
print("v(all) =", round(result.v["novice+steady+expert"], 3))

# %% Another model in a seat: nothing is rebuilt, and what others say unprompted is not generated again.
stronger = system.replace("novice", SimulatedModel(skill=1.0, conformity=0.5))
after = sweep(stronger, task, method="exact", seed=0)
print("generated:", result.cost.generated, "and then", after.cost.generated)
