"""Refusals of what pypaimon offers and this library does not, each with the way it is done here."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn


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
