"""Fetches requests in a process of its own, several at a time, and prints each key and text when it is back.

Arguments: the file, the first and the last request, and a file to wait for before beginning.
"""

import asyncio
import os
import random
import sys
import time
from pathlib import Path

from store_models import question

from collabsim.episode import Reply
from collabsim.store import GenerationStore


class Author:
    identity = "sha256:author"
    revision = "0"

    async def areply(self, request):
        await asyncio.sleep(random.random() * 0.002)
        return Reply(f"by {os.getpid()} " + "x" * random.randrange(3000))


async def main(store, first, last):
    todo = iter(range(first, last))

    async def worker():
        for number in todo:
            fetched = await store.fetch(Author(), question(seed=number))
            os.write(1, f"{number} {fetched.key} {len(fetched.reply.text)} {fetched.reply.text[:20]}\n".encode())

    await asyncio.gather(*(worker() for _ in range(8)))


if __name__ == "__main__":
    path, first, last, signal = sys.argv[1:]
    while not Path(signal).exists():
        time.sleep(0.001)
    with GenerationStore(path) as store:
        asyncio.run(main(store, int(first), int(last)))
