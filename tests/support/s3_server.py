"""An S3 server for tests, and proxies before it: one loses replies, one makes it a store that overwrites."""

from __future__ import annotations

import http.client
import logging
import random
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from unittest.mock import patch

from moto.s3.responses import S3Response
from moto.server import ThreadedMotoServer

BUCKET = "lake"
_HOP = {"connection", "transfer-encoding", "keep-alive"}


def storage_of(endpoint: str) -> dict[str, object]:
    """What a client is told."""
    return {
        "access_key_id": "AKIDFORTESTS",
        "secret_access_key": "hush-hush-hush",
        "endpoint": endpoint,
        "region": "us-east-1",
    }


@contextmanager
def _one_after_the_other() -> Iterator[None]:
    """moto looks whether an object is there and then puts it, so two threads may both create it; a store does it at
    once. (Eight processes met that in one of 21 rounds: the writer that was overwritten said so.)"""
    turn = threading.RLock()

    def taking_turns(answer: Callable[..., Any]) -> Callable[..., Any]:
        def answered(*args: Any, **kwargs: Any) -> Any:
            with turn:
                return answer(*args, **kwargs)

        return answered

    turns = {name: taking_turns(getattr(S3Response, name)) for name in ("put_object", "list_objects_v2")}
    with patch.multiple(S3Response, **turns):
        yield


@contextmanager
def s3_server() -> Iterator[str]:
    """The endpoint of a server of its own, with an empty bucket; it creates what is absent at once, as S3 does."""
    with _one_after_the_other():
        yield from _served()


def _served() -> Iterator[str]:
    logging.getLogger("werkzeug").setLevel(logging.ERROR)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    try:
        made = http.client.HTTPConnection(host, port)
        made.request("PUT", f"/{BUCKET}")
        assert made.getresponse().status == 200
        made.close()
        yield f"http://{host}:{port}"
    finally:
        server.stop()


@contextmanager
def losing_replies(endpoint: str, share: float, seed: int = 7) -> Iterator[str]:
    """The endpoint of a proxy: every request reaches the server, of the replies to writes this share gets lost."""
    drawn = random.Random(seed)
    lock = threading.Lock()

    def lost(command: str) -> bool:
        with lock:
            return command in ("PUT", "POST", "DELETE") and drawn.random() < share

    with _proxy(endpoint, lost, _HOP) as url:
        yield url


@contextmanager
def overwriting(endpoint: str) -> Iterator[str]:
    """The endpoint of a proxy that makes of the server a store which does not know conditional puts."""
    with _proxy(endpoint, lambda _: False, _HOP | {"if-none-match"}) as url:
        yield url


@contextmanager
def _proxy(endpoint: str, lost: Callable[[str], bool], dropped: Collection[str]) -> Iterator[str]:
    """A proxy that loses the replies to some commands, and leaves out some headers of requests."""
    host, _, port = endpoint.removeprefix("http://").partition(":")

    class Proxy(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True  # else each answer waits 40 ms for the client's delayed acknowledgement
        wbufsize = -1

        def _pass_on(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            upstream = http.client.HTTPConnection(host, int(port), timeout=60)
            headers = {k: v for k, v in self.headers.items() if k.lower() not in dropped}
            upstream.request(self.command, self.path, body, headers)
            answer = upstream.getresponse()
            data = answer.read()
            upstream.close()
            if lost(self.command):
                self.close_connection = True
                self.connection.close()
                return
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in (*_HOP, "content-length"):
                    self.send_header(name, value)
            length = answer.getheader("Content-Length") if self.command == "HEAD" else str(len(data))
            self.send_header("Content-Length", length or "0")
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(data)

        do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    server.handle_error = lambda *_: None  # type: ignore[method-assign]
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
