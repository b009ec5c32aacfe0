"""Kinds whose answers are words: exact text, open text, and answers that a verifier judges."""
