"""A small OpenAI-compatible server for tests: deterministic, scriptable, counts what it is asked.

    with OpenAIServer(answer=lambda messages, body: "Answer: 4") as server:
        model = ServerModel(model="m", base_url=server.base_url)

`script` holds what the next requests get instead of an answer: a `Scripted` status with a body and headers, or `DROP` (the
connection is closed without a word). `answer(messages, body)` returns a text, or a `Completion` for other fields.
"""

from __future__ import annotations

import json
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from collabsim.seeds import derive_seed

Answer = Callable[[list[dict[str, Any]], dict[str, Any]], "str | Completion"]


@dataclass(frozen=True)
class Completion:
    text: str | None
    finish: str = "stop"
    model: str | None = None
    fingerprint: str | None = None
    delay: float = 0.0
    """Seconds before the server answers."""


@dataclass(frozen=True)
class Scripted:
    status: int
    body: Any = field(default_factory=lambda: {"error": {"message": "scripted", "type": "scripted", "code": None}})
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0


DROP = Scripted(0)


@dataclass(frozen=True)
class Received:
    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    at: float
    """Monotonic seconds."""


def seeded_answer(messages: list[dict[str, Any]], body: dict[str, Any]) -> str:
    """An answer that depends on the prompt and the seed, and on nothing else."""
    return f"Answer: {derive_seed('server', json.dumps(messages), body.get('seed')) % 10}"


class OpenAIServer:
    """`POST /v1/chat/completions` on a free port of this machine, while the context is open."""

    def __init__(
        self, answer: Answer = seeded_answer, *, script: Iterable[Scripted] = (), model: str = "served-model"
    ) -> None:
        self.answer = answer
        self.script = deque(script)
        self.model = model
        self.requests: list[Received] = []
        self.most_in_flight = 0
        self._in_flight = 0
        self._lock = threading.Lock()
        self._http = _Server(("127.0.0.1", 0), _Handler)
        self._http.owner = self
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_port}/v1"

    def __enter__(self) -> OpenAIServer:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join(5)

    def _receive(self, received: Received) -> Scripted:
        with self._lock:
            self.requests.append(received)
            self._in_flight += 1
            self.most_in_flight = max(self.most_in_flight, self._in_flight)
            scripted = self.script.popleft() if self.script else None
        try:
            reply = scripted or self._complete(received.body)
            time.sleep(reply.delay)
            return reply
        finally:
            with self._lock:
                self._in_flight -= 1

    def _complete(self, body: dict[str, Any]) -> Scripted:
        said = self.answer(body["messages"], body)
        completion = said if isinstance(said, Completion) else Completion(said)
        read = sum(len(str(message["content"]).split()) for message in body["messages"])
        written = len((completion.text or "").split())
        message = {"role": "assistant", "content": completion.text}
        return Scripted(
            200,
            {
                "id": "chatcmpl-test",
                "object": "chat.completion",
                "created": 0,
                "model": completion.model or self.model,
                "system_fingerprint": completion.fingerprint,
                "choices": [{"index": 0, "message": message, "finish_reason": completion.finish, "logprobs": None}],
                "usage": {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written},
            },
            delay=completion.delay,
        )


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # idle keep-alive connections would hold up the end of the test
    request_queue_size = 128
    owner: OpenAIServer


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = self.server.owner._receive(Received(self.path, headers, body, time.monotonic()))
        if reply is DROP:
            self.close_connection = True
            return
        payload = reply.body.encode() if isinstance(reply.body, str) else json.dumps(reply.body).encode()
        self.send_response(reply.status)
        for name, value in {"Content-Type": "application/json", **reply.headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_: object) -> None:
        """Be quiet."""
