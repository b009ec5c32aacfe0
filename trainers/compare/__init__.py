"""The comparison of objectives over protocols, tasks and seeds."""
