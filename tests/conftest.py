"""What all tests share: hypothesis sets no deadline on one example, since a busy machine is no fault of the code."""

from hypothesis import settings

settings.register_profile("collabsim", deadline=None)
settings.load_profile("collabsim")
