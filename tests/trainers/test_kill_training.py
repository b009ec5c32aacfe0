"""kill -9 in the rollout, in the update, after the push and in the checkpoint: the resumed training is the whole one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from collabsim.trainers.metrics import read_metrics
from test_training import assert_same_training, router, small, state_of, trained  # noqa: F401 (fixtures)

HERE = Path(__file__).parent


@pytest.mark.slow
@pytest.mark.parametrize(("place", "step"), [("rollout", 3), ("update", 3), ("push", 4), ("checkpoint", 3)])
def test_a_killed_training_is_resumed_bit_for_bit(trained, router, tmp_path, place, step):  # noqa: F811
    paths = os.pathsep.join([str(HERE), str(HERE.parent)])
    killed = subprocess.run(
        [sys.executable, str(HERE / "training_program.py"), str(router), str(tmp_path / "run"), place, str(step)],
        env={**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        check=False,
    )
    assert killed.returncode == -9, killed.stderr.decode()
    kept = state_of(tmp_path / "run")[0].step
    assert kept >= len(read_metrics(tmp_path / "run"))
    assert 1 <= kept < 4
    small(router, tmp_path / "run", resume=True)
    assert_same_training(trained[1], tmp_path / "run")
    assert [line["step"] for line in read_metrics(tmp_path / "run")] == [1, 2, 3, 4]
