"""Scorers side by side on the vectors of tests/vectors: agreement with the right verdict, and time per answer.

Ours, Math-Verify alone, and MoCo's own scorer where `modelco` is installed (its functions are used as they are). The vectors
were written to be hard and with our scorer at hand: agreement on them is no error rate on real replies.
"""

import json
import logging
import time
from importlib import import_module
from pathlib import Path

import pytest
from recording import record

from collabsim.item import Item, ItemView
from collabsim.tasks import score_answer, scorer_for

VECTORS = Path(__file__).parents[1] / "tests" / "vectors"
LEAST_PER_SECOND = 5_000


def vectors(name):
    """The rows of a file of vectors; none when it is not there."""
    path = VECTORS / f"{name}.jsonl"
    return [json.loads(line) for line in path.open(encoding="utf-8")] if path.exists() else []


def ours(row):
    return score_answer(row["kind"], row["response"], row["gold"]).score == 1.0


def ours_choice(row):
    item = _choice_item(row)
    answer = item.scorer.extract(row["response"], item.view)
    return answer.value if answer else None


def _choice_item(row):
    options = row["options"]
    texts = options if isinstance(options, dict) else dict(zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", options, strict=False))
    return Item(row["id"], "", row["gold"], ItemView(row["id"], (), texts, "choice"), scorer_for("choice"))


def math_verify():
    """Math-Verify as its page shows it: parse both, verify."""
    logging.disable(logging.ERROR)
    package = import_module("math_verify")

    def right(row):
        gold = package.parse(f"${row['gold']}$")
        return bool(package.verify(gold, package.parse(row["response"])))

    return right


def moco():
    """MoCo's exact match and its reader of choices; None when it is not installed."""
    try:
        module = import_module("model_collaboration.data.eval")
    except ImportError:
        return None

    def right(row):
        return module.calculate_exact_match(module.extract_answer_text(row["response"]), row["gold"]) == 1.0

    def letter(row):
        return module.parse_model_response_mcq(row["response"], list(_choice_item(row).view.choices.values()))[0]

    return right, letter


def measured(rows, decide, expected):
    """Rows on which a scorer decides as it should, and seconds per answer (the first one, which loads, left out)."""
    _tried(decide, rows[0])
    start = time.perf_counter()
    found = [_tried(decide, row) for row in rows]
    seconds = (time.perf_counter() - start) / len(rows)
    return sum(verdict == expected(row) for verdict, row in zip(found, rows, strict=True)), seconds


def _tried(decide, row):
    try:
        return decide(row)
    except Exception as error:  # a scorer that raises has not decided
        return f"raised {type(error).__name__}"


def compared():
    """Rows of the table, and the agreement of our own scorer by set."""
    theirs = moco()
    answers, choices = vectors("answers"), vectors("choices")
    scorers = {"collabsim": ours, "Math-Verify": math_verify(), "MoCo": theirs and theirs[0]}
    sets = [(f"answers ({len(answers)})", answers, lambda row: row["score"] == 1, scorers)]
    if choices:
        scorers = {"collabsim": ours_choice, "MoCo": theirs and theirs[1]}
        sets.append((f"choices ({len(choices)})", choices, lambda row: row["answer"], scorers))
    rows, own = [], {}
    for name, lines, expected, scorers in sets:
        for scorer, decide in scorers.items():
            if decide is None:
                rows.append((name, scorer, "not installed", "-"))
                continue
            agreed, seconds = measured(lines, decide, expected)
            rows.append((name, scorer, f"{agreed} ({agreed / len(lines):.1%})", f"{seconds * 1e3:.2f}"))
            if scorer == "collabsim":
                own[name] = agreed / len(lines)
    return rows, own


def plain_items(kind):
    """Plain replies, no two alike, with an item each."""
    choices = dict(zip("ABCD", ("red", "blue", "green", "yellow"), strict=True)) if kind == "choice" else {}
    items, texts = [], []
    for k in range(2_000):
        gold = "ABCD"[k % 4] if choices else str(k)
        items.append(Item(f"{kind}{k}", "", gold, ItemView(f"{kind}{k}", (), choices, kind), scorer_for(kind)))
        texts.append(f"We look at case {k} of the list step by step.\nThe answer is {gold}.")
    return items, texts


def throughput(kind):
    """Answers a second of processor time, best of three; nothing is remembered from one round to the next."""
    best = 0.0
    for repeat in range(3):
        items, texts = plain_items(kind)
        texts = [f"Try {repeat}. {text}" for text in texts]
        start = time.process_time()
        right = sum(item.scorer.judge(text, item, "stop").score for item, text in zip(items, texts, strict=True))
        best = max(best, len(items) / (time.process_time() - start))
        assert right == len(items)
    return best


def test_scoring(benchmark):
    rows, own = benchmark.pedantic(compared, rounds=1)
    rates = {kind: throughput(kind) for kind in ("number", "choice", "expression")}
    shown = ", ".join(f"{kind} {rate:,.0f}" for kind, rate in rates.items())
    record(
        "scoring",
        "Scorers on hard answers: agreement with the right verdict, and time",
        ("vectors", "scorer", "agrees", "ms an answer"),
        rows,
        "The vectors in `tests/vectors` were picked to be hard and written with our scorer at hand; some rows are "
        "policy. This is no error rate on real replies. Times are wall time, loading left out.",
        f"Plain answers a second of processor time on one core, nothing remembered: {shown}.",
    )
    assert min(own.values()) > 0.98


@pytest.mark.parametrize("kind", ["number", "choice"])
def test_plain_answers_are_scored_at_five_thousand_a_second(kind):
    assert throughput(kind) >= LEAST_PER_SECOND
