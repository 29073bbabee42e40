"""An S3 server for tests, and proxies that lose or cut replies, or make it a store without put-if-absent."""

from __future__ import annotations

import http.client
import logging
import random
import socket
import socketserver
import threading
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from itertools import takewhile
from typing import TYPE_CHECKING, Any, BinaryIO
from unittest.mock import patch

if TYPE_CHECKING:
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication

BUCKET = "lake"
_HOP = {"connection", "keep-alive"}
_WRITES = ("PUT", "POST", "DELETE")


class Cut(Enum):
    """The position where a reply is cut."""

    NOWHERE = "nowhere"
    BEFORE = "before its first byte"
    HEAD = "in its headers"
    BODY = "in its body"


def storage_of(endpoint: str) -> dict[str, object]:
    """The reply to a client."""
    return {
        "access_key_id": "AKIDFORTESTS",
        "secret_access_key": "hush-hush-hush",
        "endpoint": endpoint,
        "region": "us-east-1",
    }


@contextmanager
def _one_after_the_other() -> Iterator[None]:
    """Serialize requests. moto checks whether an object exists and then puts it, so two threads may both create it.
    A real store checks and puts atomically. (Eight processes hit this race in one of 21 rounds, and the overwritten
    writer reported it.) Threads that wait for the lock do not compete for the interpreter."""
    from moto.backends import list_of_moto_modules  # loaded where a test uses the server
    from moto.moto_server.werkzeug_app import DomainDispatcherApplication

    step = threading.Lock()
    handle = DomainDispatcherApplication.__call__
    modules = tuple(list_of_moto_modules())  # moto lists a directory for each request

    def handle_serially(app: DomainDispatcherApplication, environ: dict[str, Any], start_response: Any) -> Any:
        with step:
            return handle(app, environ, start_response)

    with (
        patch.object(DomainDispatcherApplication, "__call__", handle_serially),
        patch("moto.backends.list_of_moto_modules", lambda: modules),
    ):
        yield


@contextmanager
def s3_server() -> Iterator[str]:
    """The endpoint of a server of its own, with an empty bucket. Its put-if-absent is atomic, as in S3."""
    with _one_after_the_other():
        yield from _serve_bucket()


def _serve_bucket() -> Iterator[str]:
    from moto.server import ThreadedMotoServer

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
    """The endpoint of a proxy: every request reaches the server, and this share of the replies to writes is lost."""
    with cutting_replies(endpoint, share, seed, _WRITES, [Cut.BEFORE]) as url:
        yield url


@contextmanager
def cutting_replies(
    endpoint: str,
    share: float,
    seed: int = 7,
    commands: Collection[str] = ("GET", "HEAD", *_WRITES),
    places: Sequence[Cut] = (Cut.BEFORE, Cut.HEAD, Cut.BODY),
) -> Iterator[str]:
    """A proxy's endpoint that cuts a share of the replies to `commands` at one of the `places`."""
    drawn = random.Random(seed)
    lock = threading.Lock()

    def cut(command: str) -> Cut:
        with lock:
            return drawn.choice(places) if command in commands and drawn.random() < share else Cut.NOWHERE

    with cutting_replies_by_rule(endpoint, cut) as url:
        yield url


@contextmanager
def cutting_replies_by_rule(endpoint: str, cut: Callable[[str], Cut]) -> Iterator[str]:
    """The endpoint of a proxy that cuts the reply to each command at the position that `cut` returns."""
    with _proxy(endpoint, cut, _HOP) as url:
        yield url


@contextmanager
def serve_without_conditional_puts(endpoint: str) -> Iterator[str]:
    """The endpoint of a proxy that makes the server a store without conditional puts."""
    with _proxy(endpoint, lambda _: Cut.NOWHERE, _HOP | {"if-none-match"}) as url:
        yield url


@contextmanager
def _proxy(endpoint: str, cut: Callable[[str], Cut], dropped: Collection[str]) -> Iterator[str]:
    """A proxy that cuts the replies to some commands, and removes some headers of requests.

    It supports only a part of HTTP: request bodies have a length, and the server closes after each reply.
    """
    host, _, port = endpoint.removeprefix("http://").partition(":")
    unwanted = {name.encode() for name in dropped}

    class Proxy(socketserver.StreamRequestHandler):
        disable_nagle_algorithm = True  # otherwise each reply waits 40 ms for the client's delayed acknowledgement

        def handle(self) -> None:
            while asked := _head(self.rfile):
                lengths = [int(value) for name, value in asked[1:] if name == b"content-length"]
                body = self.rfile.read(sum(lengths))
                with socket.create_connection((host, int(port)), timeout=60) as upstream:
                    upstream.sendall(_to_header_bytes(asked, unwanted, b"Connection: close\r\n") + body)
                    with upstream.makefile("rb") as reply:
                        head = _head(reply)
                        data = reply.read(*_length(head, asked[0][0]))
                place = cut(asked[0][0].decode().split(" ")[0])
                self.wfile.write(_start(_to_header_bytes(head, {b"connection"}), data, place))
                if place is not Cut.NOWHERE:
                    return

    class Server(socketserver.ThreadingTCPServer):
        allow_reuse_address = daemon_threads = True
        request_queue_size = 128

        def handle_error(self, request: object, client_address: object) -> None:
            """Errors of clients that disconnect, and of a server that stops, are not printed."""

    server = Server(("127.0.0.1", 0), Proxy)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def _start(head: bytes, body: bytes, place: Cut) -> bytes:
    """The part of a reply that the client receives. A reply without a body is cut in its headers at the latest."""
    whole = head + body
    ends = {Cut.NOWHERE: len(whole), Cut.BEFORE: 0, Cut.HEAD: len(head) // 2, Cut.BODY: len(whole) - len(body) // 2 - 1}
    return whole[: ends[place]]


def _head(stream: BinaryIO) -> list[tuple[bytes, bytes]]:
    """The first line, and the headers by their lower-case names. Empty at the end of the stream."""
    lines = takewhile(bool, iter(stream.readline, b"\r\n"))
    first = next(lines, b"")
    if not first:
        return []
    parts = (line.partition(b":") for line in lines)
    return [(first.rstrip(), b""), *((name.lower(), value.strip()) for name, _, value in parts)]


def _length(head: list[tuple[bytes, bytes]], asked: bytes) -> list[int]:
    """The body length of a reply, if declared. Otherwise the end of the connection ends it (ten milliseconds later)."""
    if asked.startswith(b"HEAD") or b" 204 " in head[0][0]:
        return [0]
    return [int(value) for name, value in head[1:] if name == b"content-length"]


def _to_header_bytes(head: list[tuple[bytes, bytes]], unwanted: Collection[bytes], more: bytes = b"") -> bytes:
    (first, _), *headers = head
    lines = (name + b": " + value + b"\r\n" for name, value in headers if name not in unwanted)
    return first + b"\r\n" + b"".join(lines) + more + b"\r\n"
