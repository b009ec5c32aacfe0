"""collabsim."""
