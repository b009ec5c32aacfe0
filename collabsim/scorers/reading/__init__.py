"""Shared reading: plain text, declarations of an answer, numbers with their units, Python syntax, judging."""
