"""Draws entries of a reasoning-gym generator: the program behind `generators._drawn_apart`.

In: `{"name", "options", "seeds"}` as the one argument. Out: entries on standard output, one a line of JSON, until nobody
reads on. Left out on purpose: everything else; it exists because Python's hash seed can only be chosen when a process
starts.
"""

from __future__ import annotations

import json
import sys

from collabsim.tasks.generators import draw

if __name__ == "__main__":
    request = json.loads(sys.argv[1])
    for entry in draw(request["name"], request["options"], request["seeds"]):
        sys.stdout.write(json.dumps(entry) + "\n")
        sys.stdout.flush()
