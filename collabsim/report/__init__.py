"""Shows results: tables in the terminal and progress while a sweep runs."""
