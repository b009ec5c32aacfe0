"""A process with a busy sandbox, for tests of how sandboxes end: prints its workers as JSON, then does as it is told."""

from __future__ import annotations

import json
import sys
import threading
import time

from collabsim.sandbox.report import Examination
from collabsim.sandbox.worker_pool import Sandbox

SLEEPER = Examination("import time\ndef f(x):\n    time.sleep(600)", "f(1)", "f")


def main() -> None:
    sandbox = Sandbox(workers=2, namespaces=sys.argv[2] == "namespaces")
    made = []
    taken = sandbox._taken

    def remembered():
        worker = taken()
        made.append({"pid": worker.pid, "root": str(worker.work.parent)})
        return worker

    sandbox._taken = remembered
    for _ in range(2):
        threading.Thread(target=sandbox.run, args=(SLEEPER,), daemon=True).start()
    while len(made) < 2:
        time.sleep(0.05)
    time.sleep(0.5)
    print(json.dumps(made), flush=True)
    if sys.argv[1] == "raise":
        raise RuntimeError("on purpose")
    if sys.argv[1] == "wait":
        time.sleep(600)


if __name__ == "__main__":
    main()
