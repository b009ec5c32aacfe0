"""Simulated models, whose values have a closed form."""
