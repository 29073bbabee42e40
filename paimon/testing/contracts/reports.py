"""The contract of ReportSender as tests, with an HTTP server of their own.

An adapter that keeps the contract of `paimon.ports.reports` passes. Derive a class from `ReportSenderContract`, whose
`make_sender` returns the adapter.
"""

from __future__ import annotations

import socket
import threading
from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from paimon.domain.errors import InvalidRequest, PaimonError, StorageError
from paimon.ports.reports import ReportSender
from paimon.testing.contracts.races import run_together

_LIMIT_BYTES = 64 * 1024
_THREADS = 4
_BODY = '{"partition": "straße=1/"}'.encode()


class ReportSenderContract(ABC):
    """The tests of the port. A subclass implements `make_sender`."""

    @abstractmethod
    def make_sender(self) -> ReportSender:
        """Return the adapter."""

    def test_a_document_arrives_and_the_response_returns(self) -> None:
        """Unchanged in both directions, with the path and the query of the URL."""
        with _serve() as (url, received):
            assert self.make_sender().post(f"{url}/echo?a=1", _BODY) == _BODY
            assert received == [("POST", "/echo?a=1", "application/json", _BODY)]

    def test_a_long_response_is_refused(self) -> None:
        """One of 64 KiB is not, and an empty one neither."""
        sender = self.make_sender()
        with _serve() as (url, _):
            for size in (0, _LIMIT_BYTES):
                assert len(sender.post(f"{url}/bytes/{size}", _BODY)) == size
            _expect(StorageError, sender, f"{url}/bytes/{_LIMIT_BYTES + 1}")

    def test_an_error_of_the_server_is_raised_and_nothing_is_sent_again(self) -> None:
        """Of the request and of the server. The server may have done what a second report would repeat."""
        sender = self.make_sender()
        for status in (400, 404, 500, 503):
            with _serve() as (url, received):
                _expect(StorageError, sender, f"{url}/status/{status}")
                assert len(received) == 1

    def test_no_redirect_is_followed(self) -> None:
        """The report goes to the server that the table names."""
        sender = self.make_sender()
        for status in (301, 302, 303, 307, 308):
            with _serve() as (url, received):
                _expect(StorageError, sender, f"{url}/status/{status}")
                assert [path for _, path, _, _ in received] == [f"/status/{status}"]

    def test_a_server_that_does_not_respond_is_an_error(self) -> None:
        """No process listens, or the connection ends without a response."""
        sender = self.make_sender()
        with socket.socket() as unused:
            unused.bind(("127.0.0.1", 0))
            _expect(StorageError, sender, f"http://127.0.0.1:{unused.getsockname()[1]}/")
        with _serve() as (url, _):
            _expect(StorageError, sender, f"{url}/close")

    def test_other_urls_are_refused(self) -> None:
        """A file of the machine is not a server."""
        for url in (
            "file:///etc/hosts",
            "ftp://127.0.0.1/x",
            "data:,x",
            "127.0.0.1/x",
            "http://",
            "http://h:port/",
            "",
        ):
            _expect(InvalidRequest, self.make_sender(), url)

    def test_no_error_shows_a_password(self) -> None:
        """Whether the adapter sends the user name and the password, or refuses them."""
        with _serve() as (url, _):
            error = _expect(PaimonError, self.make_sender(), url.replace("//", "//user:opensesame@") + "/status/500")
        while error is not None:
            assert "opensesame" not in f"{error!s}{error!r}{error.args}"
            error = error.__cause__

    def test_threads_may_send(self) -> None:
        """Each gets the response to its own report."""
        sender = self.make_sender()
        with _serve() as (url, received):
            bodies = [b"%d" % number for number in range(_THREADS)]
            assert run_together([partial(sender.post, f"{url}/echo", body) for body in bodies]) == bodies
            assert sorted(body for *_, body in received) == bodies


def _expect(kind: type[PaimonError], sender: ReportSender, url: str) -> BaseException | None:
    """Send a report that must fail, and return the error."""
    try:
        sender.post(url, _BODY)
    except kind as error:
        return error
    raise AssertionError(f"a report to {url!r} did not raise {kind.__name__}")


class _Handler(BaseHTTPRequestHandler):
    """Responds as the path says, and notes each request."""

    def do_POST(self) -> None:  # the name that http.server calls
        """Respond to a report."""
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        received: list[tuple[str, str, str, bytes]] = self.server.received  # type: ignore[attr-defined]
        received.append((self.command, self.path, self.headers.get("Content-Type", ""), body))
        _, kind, *number = self.path.partition("?")[0].split("/")
        if kind == "close":
            return
        status = int(number[0]) if kind == "status" else 200
        response = bytes(int(number[0])) if kind == "bytes" else body
        self.send_response(status)
        if 300 <= status < 400:
            self.send_header("Location", "/echo")
        self.send_header("Content-Length", str(len(response)))
        self.end_headers()
        self.wfile.write(response)

    do_GET = do_POST  # what a client sends after a redirect

    def log_message(self, *given: object) -> None:
        """Print nothing."""


@contextmanager
def _serve() -> Iterator[tuple[str, list[tuple[str, str, str, bytes]]]]:
    """Run a server on this machine; yield its URL, and method, path, type and body of each request."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        received: list[tuple[str, str, str, bytes]] = []
        server.received = received  # type: ignore[attr-defined]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", received
        finally:
            server.shutdown()
            thread.join()
