"""The rate of a large exact sweep as a user would run it: 8 members, 200 items, 51,200 runs, run folder and store on disk."""

import time

from overhead import sample_items, stored_system
from recording import record

from collabsim import GenerationStore, System, sweep
from collabsim.tasks import Task

MEMBERS, ITEMS = 8, 200


def test_sweep_rate(benchmark, tmp_path):
    items = tuple(sample_items(ITEMS))
    pool = stored_system("majority_vote", MEMBERS, items).pool
    task = Task(name="sums", items=items, dev=(), kind="number")

    def first_and_again() -> list[tuple[float, float, dict]]:
        found = []
        for _ in range(2):
            with GenerationStore(tmp_path / "generations.sqlite") as store:
                system = System("majority_vote", pool, store=store)
                started, cpu = time.perf_counter(), time.process_time()
                values = sweep(system, task, method="exact", out=tmp_path / "run").values
                found.append((time.perf_counter() - started, time.process_time() - cpu, values["cost"]))
                made = store.generated
        assert made == 0, "the second sweep generated something"
        return found

    (seconds, cpu, cost), (again, again_cpu, _) = benchmark.pedantic(first_and_again, rounds=1)
    size = sum(path.stat().st_size for path in (tmp_path / "run").iterdir())
    record(
        "sweep_rate",
        f"Exact sweep of a simulated vote: {MEMBERS} members, {ITEMS} items",
        ("", "runs", "generations", "seconds", "CPU seconds", "runs/s"),
        [
            (
                "first",
                f"{cost['runs']:,}",
                f"{cost['generated']:,}",
                f"{seconds:.1f}",
                f"{cpu:.1f}",
                f"{cost['runs'] / seconds:,.0f}",
            ),
            ("the same again", "0", "0", f"{again:.1f}", f"{again_cpu:.1f}", "-"),
        ],
        f"Run folder and generation store on disk; the run folder holds {size / 2**20:.1f} MiB.",
    )
    assert cost["runs"] == 2**MEMBERS * ITEMS
    assert cost["generated"] == MEMBERS * ITEMS
