"""Training a node in place: C-RL, its baselines, and the comparison of both.

Names are loaded on first use, so that importing this package costs nothing.
"""
