"""What all tests share.

Hypothesis sets no deadline on one example, since a busy machine is no fault of the code. Ctrl-C is heard: a shell starts
its background jobs deaf to it, and programs that tests interrupt would inherit that.
"""

import signal

from hypothesis import settings

settings.register_profile("collabsim", deadline=None)
settings.load_profile("collabsim")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
