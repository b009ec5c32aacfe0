"""The YAML config: its schema, how it is read, and how it becomes a system and a task."""
