"""ReportSender: the port that reports an event to the HTTP server of another system, such as a scheduler.

Suite: `paimon.testing.contracts.reports`.
"""

from __future__ import annotations

from typing import Protocol


class ReportSender(Protocol):
    """A sender of reports. It is safe to use from several threads."""

    def post(self, url: str, body: bytes) -> bytes:
        """Send one JSON document by POST, and return the response.

        The call is not idempotent, and is not repeated. The order of calls is that of the caller. No redirect is
        followed, and no error shows a password of the URL.

        Parameters
        ----------
        url : str
            An ``http`` or ``https`` URL.
        body : bytes
            The document as UTF-8, which is sent as ``application/json``.

        Returns
        -------
        bytes
            The body of the response, unchanged, at most 64 KiB.

        Raises
        ------
        InvalidRequest
            The URL has another scheme, or is not valid.
        StorageError
            The server does not respond, or responds with an error, a redirect or too many bytes.
        """
