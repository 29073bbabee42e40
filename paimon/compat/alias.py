"""The alias: modules named `pypaimon…` in `sys.modules`, whose names are those of this package.

Invariant: the alias has the names in `paimon.compat.names` and no others. Each other import raises an ImportError that
says what to use in its place.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from paimon.compat.names import HOMES, PACKAGES, public_way

PEER = "pypaimon"


class AliasModule(ModuleType):
    """A module of pypaimon whose public names are loaded on first use."""

    def __getattr__(self, name: str) -> Any:
        homes = HOMES.get(self.__name__, {})
        if name in homes:
            value = getattr(import_module(homes[name]), name)
            setattr(self, name, value)
            return value
        full_name = f"{self.__name__}.{name}"
        if name.startswith("__") or full_name in HOMES or full_name in PACKAGES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        raise ImportError(refusal_text(full_name), name=self.__name__)

    def __dir__(self) -> list[str]:
        return sorted(HOMES.get(self.__name__, {}))


class AliasFinder(MetaPathFinder, Loader):
    """Finds `pypaimon` and its modules before the other finders do."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """Return how a module is loaded; None for modules of other packages."""
        if fullname != PEER and not fullname.startswith(f"{PEER}."):
            return None
        if fullname not in HOMES and fullname not in PACKAGES:
            raise ModuleNotFoundError(refusal_text(fullname), name=fullname)
        return ModuleSpec(fullname, self, is_package=fullname in PACKAGES)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return an empty module."""
        return AliasModule(spec.name, f"Names of {spec.name}, which paimon.compat offers.")

    def exec_module(self, module: ModuleType) -> None:
        """Set the list of public names."""
        module.__all__ = sorted(HOMES.get(module.__name__, {}))  # type: ignore[attr-defined]


def refusal_text(name: str) -> str:
    """Return the text of the error for a name that is not offered."""
    return f"{name} is not offered by paimon.compat. Instead, {public_way(name)}."


def is_installed() -> bool:
    """Return whether the alias is installed in this process."""
    return any(isinstance(finder, AliasFinder) for finder in sys.meta_path)


def add_alias() -> None:
    """Install the alias; modules of the real package that are loaded already are an error."""
    if is_installed():
        return
    if PEER in sys.modules:
        raise RuntimeError("pypaimon is loaded already. Call paimon.compat.install() before the first import of it.")
    sys.meta_path.insert(0, AliasFinder())


def remove_alias() -> None:
    """Remove the alias and its modules from this process."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, AliasFinder)]
    for name in [name for name, module in sys.modules.items() if isinstance(module, AliasModule)]:
        del sys.modules[name]
