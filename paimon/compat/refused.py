"""What pypaimon offers and this library refuses, and the setting that lets tables have unknown options.

Invariant: an unknown option is stored, and changes no rows.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NoReturn

from attrs import define

from paimon.domain.errors import InvalidRequest, PaimonError, PaimonWarning, capitalize
from paimon.domain.options.validate import check_options


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
    allow_unknown_options: bool = True


_CURRENT = _Settings()


def set_allow_unknown_options(allowed: bool) -> None:
    """Set whether tables and catalogs may have options that this library does not know."""
    _CURRENT.allow_unknown_options = allowed


PEER_OPTIONS = frozenset({"read.parallelism"})
"""Options of pypaimon that have an effect in this package, and that the package `paimon` does not have."""


def check_known_options(options: Mapping[str, Any]) -> None:
    """Warn of each table option that is unknown, or raise an error, as the setting says."""
    for key, value in options.items():
        if value is None or key in PEER_OPTIONS:
            continue
        try:
            check_options({key: str(value)})
        except InvalidRequest as error:
            if not error.message.endswith(" is unknown"):
                continue  # the call that gets the options raises it, as the errors below
            report_unknown(f"Option {key!r}", error.hint)
        except PaimonError:
            continue


def report_unknown(option: str, hint: str | None) -> None:
    """Warn that an option is unknown, with the nearest known one, or raise an error, as the setting says."""
    near = f"{hint} " if hint and hint.startswith("did you mean") else ""
    if not _CURRENT.allow_unknown_options:
        raise InvalidRequest(f"{option} is unknown", hint=f"{near}{_HOW_TO_ALLOW}")
    text = f"{option} is unknown and has no effect. {capitalize(near)}".strip()
    warnings.warn(text, PaimonWarning, stacklevel=_find_caller())


def _find_caller() -> int:
    """Return the stack level of the program that called this package, as `warnings.warn` counts it."""
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("paimon."):
        level, frame = level + 1, frame.f_back
    return level


_HOW_TO_ALLOW = (
    "To ignore unknown options as pypaimon does, leave out --no-allow-unknown-options or allow_unknown_options=False"
)
