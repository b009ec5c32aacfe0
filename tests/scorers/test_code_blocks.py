"""Which program a reply commits to, without running any."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collabsim.scorers.code.code_blocks import program_in
from collabsim.scorers.code.fences import blocks
from collabsim.scorers.code.python_source import asked_name, canonical, name_under_test, parsed, preamble

F = "def f(x):\n    return x + 1"
PROMPT = (
    'from typing import List\n\n\ndef f(x: int) -> List[int]:\n    """Give [x + 1].\n\n    >>> f(1)\n    [2]\n    """\n'
)
FENCE = "```"


def source(text: str, prompt: str = "", *, cut: bool = False) -> str | None:
    found = program_in(text, "f", prompt, cut=cut)
    return None if found is None else found.source.strip()


@pytest.mark.parametrize(
    "tag", ["", "python", "py", "Python", "python3", "PY", "python3.11", "{.python}", 'python title="f.py"']
)
def test_a_fence_is_taken_with_any_tag_of_python_and_with_none(tag):
    assert source(f"Here:\n{FENCE}{tag}\n{F}\n{FENCE}\nDone.") == F


@pytest.mark.parametrize("tag", ["bash", "sh", "text", "json", "javascript", "output", "console"])
def test_a_fence_of_another_language_is_not_taken(tag):
    assert source(f"{FENCE}{tag}\npip install f\n{FENCE}") is None


@pytest.mark.parametrize("fence", ["```", "~~~", "````", "~~~~~"])
def test_fences_of_any_character_and_length_are_paired(fence):
    assert source(f"{fence}python\n{F}\n{fence}\nprose") == F


def test_a_fence_that_is_never_closed_reaches_to_the_end():
    assert source(f"{FENCE}python\n{F}") == F


def test_prose_after_a_fence_that_is_never_closed_falls_away():
    assert source(f"{FENCE}python\n{F}\n\nThis adds one to x, as asked.") == F


def test_a_cut_inside_code_that_still_parses_is_flagged():
    found = program_in(f"{FENCE}python\n{F}\n", "f", cut=True)
    assert found is not None
    assert found.truncated


def test_a_cut_inside_code_that_does_not_parse_is_no_answer():
    assert source(f"{FENCE}python\ndef f(x):\n    return (x +", cut=True) is None


def test_a_cut_second_attempt_leaves_the_whole_first_one():
    text = f"{FENCE}python\n{F}\n{FENCE}\nBetter:\n{FENCE}python\ndef f(x):\n    return (x +"
    assert source(text, cut=True) == F


def test_a_closed_block_of_a_cut_reply_is_not_flagged():
    found = program_in(f"{FENCE}python\n{F}\n{FENCE}\nThis works beca", "f", cut=True)
    assert found is not None
    assert not found.truncated


def test_prose_between_a_shell_block_and_a_python_block_is_no_code():
    text = f"{FENCE}bash\npip install x\n{FENCE}\nThen write this code:\n{FENCE}python\n{F}\n{FENCE}\n"
    assert source(text) == F


def test_the_last_block_that_defines_the_name_wins():
    text = f"{FENCE}python\ndef f(x):\n    return x\n{FENCE}\nThat is wrong. Fixed:\n{FENCE}python\n{F}\n{FENCE}"
    assert source(text) == F


def test_a_later_block_that_only_uses_the_name_does_not_win():
    assert source(f"{FENCE}python\n{F}\n{FENCE}\nUsage:\n{FENCE}python\nprint(f(1))\n{FENCE}") == F


def test_a_later_block_of_output_does_not_win():
    assert source(f"{FENCE}python\n{F}\n{FENCE}\nOutput:\n{FENCE}\n2\n{FENCE}") == F


@pytest.mark.parametrize(
    "body", ["pass", "...", '"""Add one."""', "raise NotImplementedError", "raise NotImplementedError()"]
)
def test_a_signature_repeated_after_the_solution_does_not_win(body):
    assert source(f"{FENCE}python\n{F}\n{FENCE}\nIt has this form:\n{FENCE}python\ndef f(x):\n    {body}\n{FENCE}") == F


def fenced(*codes: str) -> str:
    return "\nand\n".join(f"{FENCE}python\n{code}\n{FENCE}" for code in codes)


def test_helpers_in_other_blocks_come_along():
    helper = "import math\ndef g(x):\n    return math.ceil(x)"
    found = source(fenced(helper, "def f(x):\n    return g(x) + 1"))
    assert found is not None
    assert found.index("import math") < found.index("def f")


def test_helpers_of_helpers_come_along():
    text = fenced("def h(x):\n    return x", "def g(x):\n    return h(x)", "def f(x):\n    return g(x) + 1")
    assert "def h" in (source(text) or "")


def test_blocks_that_nothing_needs_stay_out():
    assert source(fenced("def g(x):\n    return 1 / 0", F, "assert f(1) == 3")) == F


def test_a_fence_inside_a_docstring_is_text_of_the_program():
    code = f'def f(x):\n    """Add one.\n\n{FENCE}\nf(1)\n{FENCE}\n    """\n    return x + 1'
    assert source(f"{FENCE}python\n{code}\n{FENCE}\nDone.") == code


def test_a_fence_in_a_list_loses_the_margin():
    text = f"1. Like this:\n   {FENCE}python\n   def f(x):\n       return x + 1\n   {FENCE}"
    assert source(text) == F


def test_a_quoted_fence_loses_its_marks():
    text = f"> {FENCE}python\n> def f(x):\n>     return x + 1\n> {FENCE}"
    assert source(text) == F


def test_bare_code_is_taken_as_it_is():
    assert source(F) == F


def test_bare_code_between_prose_is_found():
    assert source(f"Sure, here is the function:\n\n{F}\n\nIt adds one to its argument, as you asked.") == F


def test_an_import_in_prose_does_not_hide_the_code():
    assert source(f"import this idea first:\n\n{F}") == F


@pytest.mark.parametrize(
    "body",
    [
        "    return [x + 1]",
        "return [x + 1]",
        "    y = x + 1\n    return [y]",
        "  return [x + 1]",
        "y = x + 1\nreturn [y]",
    ],
)
@pytest.mark.parametrize("shape", ["{}", "```python\n{}\n```", "```\n{}\n```"])
def test_a_body_alone_continues_the_prompt(body, shape):
    found = source(shape.format(body), PROMPT)
    assert found is not None
    assert parsed(found) is not None
    assert "def f(x: int)" in found
    assert "return [" in found


def test_a_body_that_only_lost_its_first_margin_continues_the_prompt():
    found = source("y = x + 1\n    return [y]", PROMPT)
    assert found is not None
    assert found.endswith("    y = x + 1\n    return [y]")


def test_what_follows_a_body_falls_away():
    found = source("    return [x + 1]\n\n\nThis solves the task because it adds one.", PROMPT)
    assert found is not None
    assert "This solves" not in found


def test_a_function_after_a_body_comes_along():
    found = source("    return g(x)\n\n\ndef g(x):\n    return [x + 1]\n", PROMPT)
    assert found is not None
    assert "def g" in found


@pytest.mark.parametrize(
    "prose",
    [
        "",
        "   \n",
        "I cannot help with that.",
        "The function should add one to x.",
        "x + 1",
        "Answer: 3",
        "def",
        "if you add one, it works.",
    ],
)
def test_prose_is_no_program(prose):
    assert source(prose, PROMPT) is None


def test_an_attempt_under_another_name_is_still_an_answer():
    assert source(f"{FENCE}python\ndef g(x):\n    return x\n{FENCE}") == "def g(x):\n    return x"


def test_an_attempt_that_does_not_parse_is_still_an_answer():
    assert source(f"{FENCE}python\ndef f(x) return x\n{FENCE}") == "def f(x) return x"


@pytest.mark.parametrize(
    "code",
    [
        "f = lambda x: x + 1",
        "class f:\n    pass",
        "from operator import neg as f",
        "async def f(x):\n    return x",
        "if True:\n    def f(x):\n        return x",
    ],
)
def test_a_name_may_be_bound_in_any_way(code):
    assert source(f"{FENCE}python\n{code}\n{FENCE}\n{FENCE}python\nf(1)\n{FENCE}") == code


def test_windows_line_ends_are_read():
    assert source(f"{FENCE}python\r\n{F}\r\n{FENCE}\r\n".replace("\n    ", "\r\n    ")) == F


@given(st.text(alphabet=st.sampled_from("`~ \n\tdefx():>1.-#'\"python=+"), max_size=200), st.booleans())
def test_no_text_upsets_the_reader(text, cut):
    program_in(text, "f", PROMPT, cut=cut)


@given(st.sampled_from([F, "import math\n" + F, F + "\n\nprint(f(2))", "# comment\n" + F]))
def test_a_program_in_a_fence_is_read_back_as_it_is(code):
    assert source(f"{FENCE}python\n{code}\n{FENCE}") == code


def test_blocks_know_whether_they_were_closed():
    assert [(block.tag, block.closed) for block in blocks("```py\n1\n```\n~~~sh\n2")] == [("py", True), ("sh", False)]


def test_canonical_source_has_no_comments_docstrings_or_layout():
    assert canonical('def f( x ):\n  """Add."""\n  # one\n  return (x+1)\n') == canonical("def f(x):\n    return x + 1")


def test_canonical_source_keeps_what_differs():
    assert canonical("def f(x):\n    return x + 1") != canonical("def f(x):\n    return 1 + x")


def test_the_asked_function_is_the_last_of_the_prompt():
    assert asked_name("Complete the following code\ndef g(x):\n    return x\n\ndef f(x):\n    '''Ask.'''\n") == "f"


def test_a_prompt_is_read_with_words_around_its_code():
    assert asked_name("Complete this.\n\ndef f(x):\n    '''Ask.'''\n\nPut your code in a fence.") == "f"


def test_an_open_signature_without_docstring_is_read():
    assert asked_name("Write this:\ndef f(x):\nAnswer with code only.") == "f"


@pytest.mark.parametrize(
    ("tests", "name"),
    [
        ("assert f(1) == 2", "f"),
        ("assert set(f([1])) == set([1])", "f"),
        ("import math\nassert math.isclose(f(1), 2)", "f"),
        ("def check(candidate):\n    assert candidate(1) == 2", None),
        ("assert not f(1)", "f"),
        ("x = 1", None),
        ("no python (", None),
    ],
)
def test_the_name_under_test_is_read_from_assertions(tests, name):
    assert name_under_test(tests, even_built_in=False) == name


def test_a_preamble_has_imports_and_helpers_and_not_the_asked_function():
    kept = preamble("import math\n\ndef g(x):\n    return math.ceil(x)\n\ndef f(x):\n    '''Ask.'''\n", "f")
    assert "import math" in kept
    assert "def g" in kept
    assert "def f" not in kept
