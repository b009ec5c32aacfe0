"""Letters of a multiple-choice item as answers.

In: a reply and the item's options. Out: the one option that the reply commits to. The last declaration wins; a letter
must stand alone and be an option; words ("a prime number", "I think") are no letters; negated options are out; several
options are no answer. Option texts, and positions `1`, `2`, ... where no option is a number, are accepted too.
Left out on purpose: guessing from likeness between a reply and an option.
"""

from __future__ import annotations

from collabsim.tasks.item import Answer, ItemView
from collabsim.tasks.scorers.choice_cues import choice_declarations, conclusion
from collabsim.tasks.scorers.choice_reading import UNCLEAR, Options, read_options
from collabsim.tasks.scorers.declarations import Declaration, first_sentence
from collabsim.tasks.scorers.scoring import NO_ANSWER, AnswerScorer
from collabsim.tasks.scorers.text import readable, without_latex_text


class ChoiceScorer(AnswerScorer):
    """Scores answers that are one option; the canonical value is its letter. Options of equal text are the same."""

    kind = "choice"

    def extract(self, text: str, view: ItemView, finish: str = "stop") -> Answer | None:
        """The option that `text` commits to, or None."""
        part = None if finish in NO_ANSWER else readable(text)
        if part is None:
            return None
        options = read_options(tuple(view.choices.items()))
        part = without_latex_text(part).replace("$", " ")
        for declaration in reversed(choice_declarations(part, options)):
            letter = _declared(declaration, options)
            if letter == UNCLEAR:
                return None
            if letter:
                return Answer(letter, letter)
        letter = _mentioned(part, options) if finish == "stop" else None
        return Answer(letter, letter) if letter and letter != UNCLEAR else None

    def same(self, a: Answer, b: Answer, view: ItemView) -> bool:
        """Whether two answers are one letter, or letters of options with one text."""
        return bool(a.value == b.value or view.choices[a.value] == view.choices[b.value])

    def gold(self, text: str, view: ItemView) -> Answer | None:
        """A gold letter as an answer; None when it is no option."""
        return Answer(text, text) if text in view.choices else None


def _declared(declaration: Declaration, options: Options) -> str | None:
    if declaration.form == "open box":
        return UNCLEAR
    if declaration.form in ("box", "tag", "marker"):
        return UNCLEAR if not declaration.text else options.whole(declaration.text)
    if declaration.form == "correction":
        return options.direct(declaration.text)
    if declaration.form == "sentence" and "?" in first_sentence(declaration.text)[1]:
        return None
    return options.phrase(declaration.text, negated=declaration.negated)


def _mentioned(part: str, options: Options) -> str | None:
    """The option of a reply without a declaration: a conclusion, a line with nothing but a letter, the only mention."""
    reply = part.strip()
    if concluded := conclusion(reply, options):
        return concluded
    lines = [line.strip() for line in reply.splitlines() if line.strip()]
    if len(lines) == 1:
        return options.phrase(reply)
    bare = {letter for line in (lines[:1] + lines[-1:]) if (letter := options.whole(line))}
    if len(bare) == 1:
        return bare.pop()
    return UNCLEAR if bare else options.only_mention(reply)
