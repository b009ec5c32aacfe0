r"""Finds the places where a reply takes an option.

In: a reply in plain form and a reader of its options. Out: declarations by position: those of every kind of task
(`declarations.py`) and those of choices ("the best option is", "I go with", "C is correct", "wait, C", labels of other
languages, `{"answer": "C"}`). What the reply only supposes, asks, or says of others is no declaration. Left out on
purpose: what the declared phrase names; see `phrases.py`.
"""

from __future__ import annotations

import re

from collabsim.scorers.choice.options import Mention
from collabsim.scorers.choice.phrases import UNCLEAR, PhraseReader
from collabsim.scorers.choice.polarity import JOINT
from collabsim.scorers.reading.declarations import Declaration, declarations, last_matches, rest_of_line

_NOUN = r"(?:choice|option|pick|selection|one|response|conclusion|fit|match|guess|vote|statement|alternative|solution)"
_CHOICE_IS = re.compile(
    rf"\b{_NOUN}\s*(?::|,?\s+(?:(?:here|then|therefore|thus|clearly|among them|of these),?\s+)?"
    r"(?:is|was|would be|should be|must be|seems to be|has to be|ought to be|goes to|remains)(?P<negated>n't"
    r"|\s+not\b)?)(?=[\s:])",
    re.IGNORECASE,
)
"""A sentence about the choice: `the best option is `."""
_ANSWER_IS = re.compile(
    r"\b(?:answer|ans)(?:,\s*[\w\s]{1,30},|\s+(?:here|then|therefore|thus|clearly|obviously|probably|likely|surely))*\s+"
    r"(?:is|was|has to be|have to be|had to be|needs to be|ought to be|must be|lies in|comes out as"
    r"|would be)(?P<negated>n't|\s+not\b)?(?=[\s:])",
    re.IGNORECASE,
)
"""A sentence about the answer with words in between: `the answer, I think, is `."""
_QUESTION_IS = re.compile(
    r"\banswer\b[^.\n]{0,20}[\"'“][^\"'”\n]{1,300}[\"'”]\s+(?:is|would be|must be)(?P<negated>n't|\s+not\b)?(?=[\s:])",
    re.I,
)
"""A sentence about the answer that quotes the question: `answer to "Who?" is `."""
_TAKE = re.compile(
    r"\b(?:go(?:ing)?\s+(?:with|for)|choose|chose|choosing|pick|picked|picking|select|selected|selecting|opt(?:ing|ed)?\s+for"
    r"|settl(?:e|ed|ing)\s+(?:on|for)|vote\s+(?:for|goes\s+to)|voting\s+for|answer\s+with"
    r"|lean(?:ing)?\s+(?:towards?|to)|prefer|stick(?:ing)?\s+with"
    r"|(?:I'd|I would|I will|I'll|I) (?:say|answer|guess|conclude|suspect)|now\s+(?:think|believe)|points?\s+to"
    r"|leaves\s+(?:us\s+with|only)?"
    r"|narrow(?:s|ed)?\s+(?:it\s+)?(?:down\s+)?to)(?=[\s:])",
    re.IGNORECASE,
)
"""A verb of choosing: `I go with `."""
_LABEL = re.compile(
    r"(?:^|[\n.!?;]\s*)(?:the\s+|my\s+)?(?:(?:final|correct|best|chosen)\s+)*(?:solution|result|correct|conclusion"
    r"|selected|ans\.?|final|verdict|decision)\s*[:=]\s*"
    r"|\bans\.\s+(?=\(?[A-Za-z]\b)|\b[Aa](?:nswer|NSWER)\s+(?=\(?[A-Z]\)?(?:[\s.,:;!]|\Z))"
    r"|[\"'](?:final_?\s?|correct_?\s?)?(?:answer|choice|option)[\"']\s*:\s*"
    r"|^[ \t#>*]*(?:the\s+)?(?:final\s+|correct\s+)?answer[ \t#*]*\n\s*",
    re.IGNORECASE | re.MULTILINE,
)
"""A label: `Verdict: C`, `"choice": "C"`."""
_FOREIGN = re.compile(
    r"(?:\b(?:respuesta|r[ée]ponse|antwort(?:e)?|l[öo]sung|risposta|resposta|antwoord|svar(?:et)?|vastaus"
    r"|odpowied[źz]|odpov[ěe]ď|odpoveď|v[áa]lasz|r[ăa]spuns\w*"
    r"|yan[ıi]t|cevap|jawaban(?:nya)?|jibu|sagot|ответ|відповідь|одговор|отговор|απάντηση|đáp án"
    r"|trả lời)(?![^\W\d_])|答案|正解|解答|回答|答え|答|정답|답"
    r"|الإجابة|الجواب|إجابة|תשובה|پاسخ|جواب|उत्तर|উত্তর|సమాధానం|பதில்|คำตอบ)"
    r"[^\n.!?:：]{0,40}?(?:\s*[:=]\s*|[是为為はが는은이가]\s*|\s+(?:es|est|ist|lautet|è|é|to|jest|is|je|är|er|on|adalah|ni|là"
    r"|este)\s+|-\s+)",
    re.IGNORECASE,
)
"""A label of another language: `Antwort: C`."""
_CORRECTION = re.compile(
    r"(?:\b(?:wait|hmm+|actually|oops|sorry|correction|rather|instead|no|nope|scratch that|my mistake"
    r"|on (?:second thoughts?|(?:further |closer )?(?:reflection|inspection))|I meant?"
    r"|or better|yes|make that)\b[\s,.:;!?—–-]*)+",
    re.IGNORECASE,
)
"""A change of mind: `wait, C`."""
_BUT = re.compile(
    r"(?<!anything )(?<!nothing )(?<!all )(?<!none )\b(?:but|however|instead)[,:]?\s+(?:(?:in fact|actually|really"
    r"|now|rather),?\s+)?(?:I\s+(?:now\s+)?(?:think|believe|say)\s+)?"
    r"(?:(?:it|this|that)(?:'s| is| must be| should be)\s+)?(?=\(?(?:option\s|choice\s)?\(?[A-Z]\)?\s*(?:[.!\n]|\Z))",
    re.IGNORECASE,
)
"""A contrast that ends in an option: `but it is C.`"""
_SO = re.compile(
    r"(?:\b(?:so|thus|therefore|hence|consequently|accordingly|in conclusion|conclusion|overall|also)\b|→|⇒|=>|->|∴)[,:]?\s+"
    r"(?:(?:it|this|that)(?:'s| is| must be| should be| has to be)\s+)?(?:the\s+)?(?:option\s+|choice\s+|answer\s+)?"
    r"|(?<!if )(?<!whether )\b(?:it|this|that)(?: must be|'s| is| should be| has to be| can only be"
    r"| would be)\s+(?!(?:the\s+)?(?:not|n't)\b)(?:option\s+|choice\s+)?",
    re.IGNORECASE,
)
"""A conclusion: `so it is C`."""
_DENIES = re.compile(
    r"(?:\bnot|n't|\bnever|\bdoubt|\bdisagree|\bunlikely|\bfalse|\bwrong|\bincorrect|\bhardly)\s+(?:(?:think"
    r"|believe|say|agree|sure|claim|that|to|conclude|mean"
    r"|the|case|suppose|with|correct|right|final|best|a|an|it|if|whether)\s+)*\Z",
    re.IGNORECASE,
)
"""A denial before a declaration: `I do not think that `."""
_SUPPOSES = re.compile(
    r"\bif\b[^.!?\n;]{0,60}\b(?:were|had)\b[^.!?\n;]{0,40}\Z|(?:\b(?:if|suppose|supposing|assum\w+|whether|unless"
    r"|were|had|tempt\w+|mislead\w*|at first|initially|originally|previously|first|another|next|second|other|worst"
    r"|weakest|least\s+\w+|runner-up|close)\b"
    r"|\b(?:some|others?|people|many|one|you|they|students?|someone|somebody|most)\b[^.!?\n,;]{0,30}\b(?:say|says"
    r"|think|thinks|believe|believes|assume|argue|argues|guess|claim|claims|suggest|suggests|pick|choose)"
    r"|\b(?:might|may|could|would)\s+(?:say|think|believe|guess|argue|suggest|seem))\b[^.!?\n,;]{0,30}\Z",
    re.IGNORECASE,
)
"""A supposition, or the opinion of others, before a declaration: `some people think `."""
_BOTH_RIGHT = re.compile(
    rf"{JOINT.pattern}|[^.!?;\n]{{0,60}}\b(?:and|so is|also)\s+(?:\w+\s+)?[(\[\"']{{0,8}}", re.IGNORECASE
)
"""What joins options that are right together: ` and `."""
_MARKS = ("box", "open box", "tag", "marker")


def choice_declarations(text: str, reader: PhraseReader) -> list[Declaration]:
    """All declarations of a choice in `text`, by position; suppositions are left out, denials are negated."""
    placed = declarations(text)
    for pattern in (_CHOICE_IS, _ANSWER_IS, _QUESTION_IS):
        for match in last_matches(pattern, text):
            negated = match["negated"] is not None
            placed.append(Declaration("sentence", match.start(), rest_of_line(text, match.end())[0], negated=negated))
    for match in last_matches(_TAKE, text):
        placed.append(Declaration("sentence", match.start(), rest_of_line(text, match.end())[0]))
    for pattern in (_LABEL, _FOREIGN):
        for match in last_matches(pattern, text):
            placed.append(Declaration("label", match.start(), rest_of_line(text, match.end())[0]))
    for pattern in (_CORRECTION, _BUT):
        for match in last_matches(pattern, text):
            placed.append(Declaration("correction", match.end(), text[match.end() : match.end() + 300]))
    placed += [Declaration("correction", start, named) for start, named in _affirmed(text, reader)]
    meant = [declaration for declaration in (_as_said(text, one) for one in placed) if declaration]
    return sorted(meant, key=lambda declaration: declaration.start)


def _affirmed(text: str, reader: PhraseReader) -> list[tuple[int, str]]:
    """Where options are called right, and their names; those that are called right together are one."""
    spans: list[tuple[int, str]] = []
    last: Mention | None = None
    for mention in reader.mentions(text):
        if mention.state == "affirmed":
            named = text[mention.start : mention.end]
            if last is not None and _BOTH_RIGHT.fullmatch(text, last.end, mention.start):
                start, before = spans.pop()
                spans.append((start, f"{before} and {named}"))
            else:
                spans.append((mention.start, named))
        last = mention if mention.state == "affirmed" else None
    return spans


def _as_said(text: str, declaration: Declaration) -> Declaration | None:
    """The declaration as its sentence means it: None when it supposes, negated when it denies."""
    if declaration.form in _MARKS:
        return declaration
    before = text[max(0, declaration.start - 80) : declaration.start]
    if _SUPPOSES.search(before):
        return None
    if not declaration.negated and _DENIES.search(before):
        return Declaration(declaration.form, declaration.start, declaration.text, declaration.body, negated=True)
    return declaration


def conclusion(text: str, reader: PhraseReader, start: int = 0) -> str | None:
    """The letter of the last "so it is C" after `start`; None without one."""
    for match in reversed(last_matches(_SO, text)):
        if match.start() < start:
            break
        before = text[max(0, match.start() - 80) : match.start()]
        if _SUPPOSES.search(before) or _DENIES.search(before):
            continue
        letter = reader.lead(rest_of_line(text, match.end())[0])
        if letter and letter != UNCLEAR:
            return letter
    return None


_DOUBTS = re.compile(
    r"\b(?:wait|hmm+|actually|on second thoughts?|scratch that|my mistake|oops|let me (?:re|double|check"
    r"|think again)\w*|no,|however|but then)",
    re.IGNORECASE,
)
"""A doubt about what was declared: `wait, `."""


def second_thoughts(text: str, start: int) -> int | None:
    """Where the reply first doubts what it declared at `start`; None when it does not."""
    doubt = _DOUBTS.search(text, start)
    return doubt.start() if doubt else None
