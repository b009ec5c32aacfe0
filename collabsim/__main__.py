"""`python -m collabsim` is the `collabsim` command."""

from collabsim.cli import main

main()
