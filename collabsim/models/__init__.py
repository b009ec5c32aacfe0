"""The models of collabsim."""
