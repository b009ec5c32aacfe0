"""`make setup` against stand-ins for Python and pip: what it installs when, and its one line on what is missing.

The stand-in is a shell script that writes down how it was called; only the tools linked below are on the PATH.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = ("sh", "cat", "cksum", "cp", "date", "dirname", "grep", "mkdir", "tail", "uname")
INTERPRETER = """#!/bin/sh
case "$*" in
*lacks*) echo "{lacks}" ;;
*version_info*) echo "{version}" ;;
--version) echo "Python {version}.0" ;;
"-m venv"*) mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo "command = x -m venv $(pwd -P)/.venv" >.venv/pyvenv.cfg
    echo venv >>calls ;;
"-m pip"*) case "$*" in
    *build.txt*) echo build >>calls ;;
    *torch==*+cpu) [ ! -e no-cpu-torch ] || exit 1; echo "cpu-torch" >>calls ;;
    *torch==*) echo "plain-torch" >>calls ;;
    *lock.txt*) echo lock >>calls ;;
    *lock-cuda.txt*) echo cuda-lock >>calls ;;
    *--editable*) echo project >>calls ;;
    esac
    [ ! -e offline ] || {{ echo "ERROR: no index" && exit 1; }} ;;
esac
"""


class Checkout:
    """A folder with the set-up script and its inputs, and a PATH with stand-ins."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.bin = folder / "checkout", folder / "bin"
        shutil.copytree(ROOT / "requirements", self.folder / "requirements")
        shutil.copy(ROOT / "pyproject.toml", self.folder)
        self.bin.mkdir()
        for tool in TOOLS:
            (self.bin / tool).symlink_to(str(shutil.which(tool)))

    def add_python(self, name: str, version: str = "3.12", lacks: str = "") -> None:
        self.add_program(name, INTERPRETER.format(version=version, lacks=lacks))

    def add_program(self, name: str, text: str = "#!/bin/sh\n") -> None:
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def setup(self, **variables: str) -> subprocess.CompletedProcess[str]:
        script = self.folder / "requirements" / "setup.sh"
        environment = {"PATH": str(self.bin), **variables}
        return subprocess.run([script], env=environment, capture_output=True, text=True, timeout=60)

    def calls(self) -> list[str]:
        """What was done since the last time this was asked."""
        log = self.folder / "calls"
        done = log.read_text().split() if log.exists() else []
        log.unlink(missing_ok=True)
        return done


@pytest.fixture
def checkout(tmp_path) -> Checkout:
    return Checkout(tmp_path)


@pytest.fixture
def ready(checkout) -> Checkout:
    checkout.add_python("python3.12")
    assert checkout.setup().returncode == 0
    assert checkout.calls() == ["venv", "build", "cpu-torch", "lock", "project"]
    return checkout


def test_a_second_call_installs_nothing_and_says_nothing(ready):
    second = ready.setup()
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert ready.calls() == []


def test_new_times_on_the_same_files_install_nothing(ready):
    (ready.folder / "pyproject.toml").touch()
    (ready.folder / "requirements" / "lock.txt").touch()
    ready.setup()
    assert ready.calls() == []


def test_an_edited_lock_is_installed(ready):
    with (ready.folder / "requirements" / "lock.txt").open("a") as lock:
        lock.write("six==1.17.0\n")
    ready.setup()
    assert ready.calls() == ["build", "cpu-torch", "lock"]


def test_an_edited_pyproject_installs_the_project_only(ready):
    with (ready.folder / "pyproject.toml").open("a") as pyproject:
        pyproject.write("# edited\n")
    ready.setup()
    assert ready.calls() == ["project"]


def test_an_environment_without_its_interpreter_is_made_anew(ready):
    (ready.folder / ".venv" / "bin" / "python").unlink()
    ready.setup()
    assert ready.calls()[0] == "venv"


def test_an_environment_of_another_place_is_made_anew(ready, tmp_path):
    ready.folder = ready.folder.rename(tmp_path / "moved")
    assert "another folder" in ready.setup().stdout
    assert ready.calls()[0] == "venv"


def test_a_failed_install_shows_the_end_of_its_log_and_is_tried_again(checkout):
    checkout.add_python("python3.12")
    (checkout.folder / "offline").touch()
    failed = checkout.setup()
    assert failed.returncode == 1
    assert "ERROR: no index" in failed.stderr
    assert "setup.log" in failed.stderr
    (checkout.folder / "offline").unlink()
    checkout.calls()
    assert checkout.setup().returncode == 0
    assert checkout.calls() == ["build", "cpu-torch", "lock", "project"]


def test_without_a_fitting_python_one_line_says_what_to_install(checkout):
    checkout.add_python("python3", version="3.9", lacks="version")
    checkout.add_program("apt-get")
    refused = checkout.setup()
    assert refused.returncode == 1
    (line,) = refused.stderr.splitlines()
    assert "no Python 3.11, 3.12 or 3.13 found" in line
    assert "apt-get install python3.12 python3.12-venv python3.12-dev gcc make" in line


@pytest.mark.parametrize("lacks", ["venv", "headers", "compiler", "venv headers compiler"])
def test_a_missing_part_of_a_fitting_python_is_named_with_its_install_line(checkout, lacks):
    checkout.add_python("python3.13", version="3.13", lacks=lacks)
    checkout.add_program("dnf")
    refused = checkout.setup()
    assert refused.returncode == 1
    assert refused.stderr == (
        f"setup: python3.13 lacks: {lacks}; install: sudo dnf install python3.13 python3.13-devel gcc make\n"
    )


def test_a_complete_python_is_preferred_to_a_newer_one_that_lacks_something(checkout):
    checkout.add_python("python3.13", version="3.13", lacks="headers")
    checkout.add_python("python3.11", version="3.11")
    assert "making .venv with Python 3.11.0" in checkout.setup().stdout


def test_an_intel_mac_is_told_what_to_expect(checkout):
    checkout.add_python("python3.12")
    (checkout.bin / "uname").unlink()
    checkout.add_program("uname", "#!/bin/sh\necho Darwin x86_64\n")
    assert "Intel Mac" in checkout.setup().stderr


def test_the_interpreter_can_be_named(checkout):
    checkout.add_python("python3.13", version="3.13")
    checkout.add_python("mine", version="3.12")
    assert "making .venv with Python 3.12.0" in checkout.setup(PYTHON="mine").stdout


def test_without_a_cpu_build_of_torch_the_plain_one_is_taken_and_said(checkout):
    checkout.add_python("python3.12")
    (checkout.folder / "no-cpu-torch").touch()
    assert "TORCH_INDEX" in checkout.setup().stderr
    assert checkout.calls() == ["venv", "build", "plain-torch", "lock", "project"]


def test_a_mac_gets_the_plain_torch_without_a_word(checkout):
    checkout.add_python("python3.12")
    (checkout.bin / "uname").unlink()
    checkout.add_program("uname", '#!/bin/sh\n[ "$1" = -s ] && echo Darwin || echo Darwin arm64\n')
    assert checkout.setup().stderr == ""
    assert checkout.calls() == ["venv", "build", "plain-torch", "lock", "project"]


def test_a_machine_with_an_nvidia_gpu_gets_the_cuda_set(checkout):
    checkout.add_python("python3.12")
    (checkout.bin / "uname").unlink()
    checkout.add_program("uname", "#!/bin/sh\necho Linux x86_64\n")
    checkout.add_program("nvidia-smi", "#!/bin/sh\necho 'GPU 0: a card'\n")
    assert "for cuda" in checkout.setup().stdout
    assert checkout.calls() == ["venv", "build", "cuda-lock", "project"]


def test_the_accelerator_can_be_named_and_a_change_of_it_is_installed(ready):
    ready.setup(ACCELERATOR="cuda")
    assert ready.calls() == ["build", "cuda-lock"]


def test_an_unknown_accelerator_is_refused(ready):
    refused = ready.setup(ACCELERATOR="tpu")
    assert refused.returncode == 1
    assert "ACCELERATOR must be cpu or cuda, not tpu" in refused.stderr
