"""Trainers of a node inside a live system. Left empty on purpose until C-RL lands; no command refers to it yet."""
