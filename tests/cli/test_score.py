"""`collabsim score`: JSON lines in, JSON lines out."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [str(Path(sys.executable).with_name("collabsim")), "score", "--kind"]


def score(kind, *lines):
    """Exit code, scores and complaints of the command on these lines (bytes, text, or rows)."""
    encoded = (
        line if isinstance(line, bytes) else (line if isinstance(line, str) else json.dumps(line)).encode()
        for line in lines
    )
    done = subprocess.run([*COMMAND, kind], input=b"\n".join(encoded) + b"\n", capture_output=True, check=False)
    return done.returncode, [json.loads(line) for line in done.stdout.splitlines()], done.stderr.decode()


def test_every_line_gets_one_line_in_order():
    rows = [{"response": f"Answer: {k}", "gold": k if k % 2 else k + 1} for k in range(6)]
    code, scores, complaints = score("number", *rows)
    assert (code, complaints) == (0, "")
    assert [entry["score"] for entry in scores] == [0, 1, 0, 1, 0, 1]
    assert scores[1] == {"score": 1.0, "verdict": "right", "extracted": "1", "reason": "last declaration 'Answer: 1'"}


def test_bad_lines_are_named_and_end_nothing():
    code, scores, complaints = score(
        "number",
        {"response": "Answer: 1", "gold": "1"},
        "no JSON",
        {"response": "Answer: 1"},
        {"gold": "1"},
        {"response": "Answer: 1", "gold": None},
        {"response": None, "gold": "1"},
        ["Answer: 1", "1"],
        b'{"response": "\xff", "gold": "1"}',
        {"response": "Answer: 1", "gold": "1", "finish": ["stop"]},
        "",
        {"response": "Answer: 2", "gold": "1"},
    )
    assert (code, complaints) == (1, "")
    assert [entry["verdict"] for entry in scores] == ["right", *["error"] * 8, "wrong"]
    assert all(entry["score"] is None for entry in scores[1:9])
    said = [entry["reason"] for entry in scores[1:9]]
    for place, (reason, part) in enumerate(
        zip(said, ("JSON", "gold", "response", "gold", "response", "object", "JSON", "finish"), strict=True), start=2
    ):
        assert reason.startswith(f"line {place}: ")
        assert part in reason


def test_options_are_a_mapping_or_a_list():
    rows = [
        {"response": "B", "gold": "B", "options": {"A": "red", "B": "blue"}},
        {"response": "B", "gold": "B", "options": ["red", "blue"]},
        {"response": "B", "gold": "B"},
    ]
    code, scores, _ = score("choice", *rows)
    assert code == 1
    assert [entry["score"] for entry in scores] == [1.0, 1.0, None]


def test_an_unparsed_reply_scores_0_and_is_no_error():
    code, scores, _ = score("expression", {"response": "<think>5", "gold": "5"})
    assert code == 0
    assert scores == [{"score": 0.0, "verdict": "unparsed", "extracted": None, "reason": "thinking never closed"}]


def test_scores_come_while_the_input_is_still_open():
    with subprocess.Popen([*COMMAND, "number"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin
        assert process.stdout
        for k in (1, 2):
            process.stdin.write(json.dumps({"response": f"Answer: {k}", "gold": "1"}) + "\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["score"] == float(k == 1)
        process.stdin.close()
        assert process.wait(timeout=30) == 0


def test_no_input_is_no_output():
    done = subprocess.run([*COMMAND, "number"], input=b"", capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize("arguments", [["numbre"], []])
def test_an_unknown_kind_is_refused_in_one_line(arguments):
    command = [*COMMAND, *arguments] if arguments else COMMAND[:2]
    done = subprocess.run(command, input="", capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert len(done.stderr.splitlines()) == 1
