"""The kind whose answers are programs."""
