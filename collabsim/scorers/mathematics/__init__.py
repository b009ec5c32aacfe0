"""Kinds whose answers are mathematics: numbers and expressions."""
