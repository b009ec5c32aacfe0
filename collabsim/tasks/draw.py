"""Draws one chunk of a reasoning-gym generator: the program behind `generators._drawn_apart`.

In: `{"name", "options", "seed"}` on standard input. Out: the entries as one line of JSON on standard output. Left out on
purpose: everything else; it exists because Python's hash seed can only be chosen when a process starts.
"""

from __future__ import annotations

import json
import sys

from collabsim.tasks.generators import draw_chunk

if __name__ == "__main__":
    request = json.load(sys.stdin)
    sys.stdout.write("\n" + json.dumps(draw_chunk(request["name"], request["options"], request["seed"])))
