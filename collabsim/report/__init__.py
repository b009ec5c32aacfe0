"""The report of collabsim."""
