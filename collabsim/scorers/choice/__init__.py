"""The kind whose answers are letters of options."""
