"""Kinds whose answers are mathematics: numbers and expressions.

The rules of the reader (`answer_reader.py` and what it calls) are frozen. A new special case comes only with golds or replies
from outside (a data set's golds, or a model's own output) that the present rules read wrongly, which go into `tests/vectors/`
as they are. A rule is changed or taken out in preference to adding one; two notations of one value that the reader does not
know are left to Math-Verify; and every regex keeps an example of what it is for beside it.
"""
