"""Settings of the alias in this process.

`install` and ``python -m paimon.compat`` set them; pypaimon has no counterpart.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from attrs import define

from paimon.domain.errors import InvalidRequest


@define
class _Settings:
    allow_unknown_options: bool = False


_CURRENT = _Settings()


def set_allow_unknown_options(allowed: bool) -> None:
    """Set whether tables may have options that this library does not know."""
    _CURRENT.allow_unknown_options = allowed


def allows_unknown_options() -> bool:
    """Return whether tables may have options that this library does not know."""
    return _CURRENT.allow_unknown_options


HOW_TO_ALLOW = (
    "To ignore unknown options as pypaimon does, run python -m paimon.compat --allow-unknown-options, "
    "or call paimon.compat.install(allow_unknown_options=True)"
)


@contextmanager
def option_errors() -> Iterator[None]:
    """Add to the error about an unknown table option how it is allowed."""
    try:
        yield
    except InvalidRequest as error:
        if not error.message.endswith(" is unknown"):
            raise
        near = f"{error.hint} " if (error.hint or "").startswith("did you mean") else ""
        raise InvalidRequest(error.message, subject=error.subject, hint=f"{near}{HOW_TO_ALLOW}") from error
