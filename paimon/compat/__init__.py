"""The names of pypaimon 2.1.0 over the public interface of this library.

`install` registers them as the package `pypaimon` in the running process, so that a program written for pypaimon runs
unchanged: ``python -m paimon.compat program.py``. `docs/how-to/move-from-pypaimon.md` compares both, name by name.

>>> import paimon.compat
>>> paimon.compat.install()
>>> from pypaimon import CatalogFactory
>>> catalog = CatalogFactory.create({"warehouse": "memory://compat"})
>>> catalog.create_database("shop", True)
>>> catalog.list_databases()
['shop']
>>> paimon.compat.uninstall()
"""

from __future__ import annotations

from paimon.compat.alias import add_alias, is_installed, remove_alias
from paimon.compat.refused import set_allow_unknown_options

__all__ = ["install", "is_installed", "uninstall"]


def install(*, allow_unknown_options: bool = True) -> None:
    """Register the names of this package as `pypaimon` in the running process.

    Unknown options of tables and catalogs are accepted with a warning, or refused with `allow_unknown_options=False`.
    """
    add_alias()
    set_allow_unknown_options(allow_unknown_options)


def uninstall() -> None:
    """Remove the alias from the running process; objects that were made with it continue to work."""
    remove_alias()
    set_allow_unknown_options(True)
