"""What pypaimon offers and this library refuses, and the setting that lets tables have unknown options."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from attrs import define

from paimon.domain.errors import InvalidRequest


def refuse(feature: str, instead: str) -> NoReturn:
    """Raise the error for a feature that is not offered."""
    raise NotImplementedError(f"paimon.compat does not offer {feature}. Instead, {instead}.")


class PeerClass:
    """Mixin: an attribute that pypaimon has and this package does not is refused with the page that lists the names."""

    if not TYPE_CHECKING:  # a type checker must not accept every attribute name

        def __getattr__(self, name):
            owner = type(self).__name__
            if name.startswith("_"):
                raise AttributeError(f"{owner!r} object has no attribute {name!r}", name=name, obj=self)
            message = f"paimon.compat does not offer {owner}.{name}."
            where = "docs/how-to/move-from-pypaimon.md lists what it offers, and the way without it."
            raise AttributeError(f"{message} {where}", name=name, obj=self)


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
