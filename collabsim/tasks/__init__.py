"""The tasks of collabsim."""
