"""The store of collabsim."""
