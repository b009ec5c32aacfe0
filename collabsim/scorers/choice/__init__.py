"""The kind whose answers are letters of options.

The rules for reading replies are frozen. A new special case comes only with replies from outside (a model's own output, or a
published set of replies with their labels) that the present rules read wrongly, which go into `tests/vectors/` as they are.
A rule is changed or taken out in preference to adding one, and every regex keeps an example of what it is for beside it.
"""
