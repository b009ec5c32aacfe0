"""The coalitions of collabsim."""
