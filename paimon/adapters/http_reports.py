"""HttpReports: reports through the HTTP client of Python.

Invariant: no redirect is followed, so a report goes to the server that the table names.
"""

from __future__ import annotations

from paimon.domain.errors import InvalidRequest, StorageError
from paimon.domain.secrets import remove_password

_TIMEOUT_SECONDS = 30
_MAX_RESPONSE_BYTES = 64 * 1024


class HttpReports:
    """See `paimon.ports.reports.ReportSender`."""

    def post(self, url: str, body: bytes) -> bytes:
        """Send a document, and return the response."""
        from http.client import HTTPException  # loaded with the first report, as urllib
        from urllib import parse, request

        class Direct(request.HTTPRedirectHandler):
            """Follows no redirect."""

            def redirect_request(self, *_: object) -> None:
                """Return no request, so that the redirect is an error."""

        try:
            parts = parse.urlsplit(url)
            is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
        except ValueError:
            is_valid = False
        if not is_valid or parts.username is not None:
            hint = "set 'partition.mark-done-action.http.url' to an http or https URL without a user name"
            raise InvalidRequest(
                f"URL {remove_password(url)!r} of a report is not an HTTP URL.", subject="url", hint=hint
            ) from None
        try:
            sent = request.Request(url, body, {"Content-Type": "application/json"}, method="POST")
            with request.build_opener(Direct).open(sent, timeout=_TIMEOUT_SECONDS) as response:
                found = bytes(response.read(_MAX_RESPONSE_BYTES + 1))
        except (OSError, ValueError, HTTPException) as error:
            raise StorageError(remove_password(url), f"the report was not accepted: {error}") from error
        if len(found) > _MAX_RESPONSE_BYTES:
            raise StorageError(remove_password(url), f"the response has more than {_MAX_RESPONSE_BYTES} bytes")
        return found
