"""How results are shown: tables in the terminal and progress while a sweep runs."""
