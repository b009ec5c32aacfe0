"""Coalitions of players: which of them a sweep runs, and the values computed from their outcomes."""
