"""Settings of the alias in this process.

`install` and ``python -m paimon.compat`` set them; pypaimon has no counterpart.
"""

from __future__ import annotations

from attrs import define


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
