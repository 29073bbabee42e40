"""File formats that installed packages offer, as entry points of the group ``paimon.formats``.

Invariant: a package is imported only when a table or a file has a format that the library does not have itself. A
package cannot replace a format of the library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING

from paimon.adapters.guarded import guard_format, translate_errors
from paimon.domain.errors import Unsupported
from paimon.ports.formats import FormatIO

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

FORMATS = "paimon.formats"
_METHODS = ("read", "writer", "identifier")


class InstalledFormats(Mapping[str, FormatIO]):
    """The formats of installed packages by name, each imported on first use."""

    def __getitem__(self, name: str) -> FormatIO:
        if name not in _list_entry_points():
            raise KeyError(name)
        return _load_format(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in _list_entry_points() and _load_format(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(_list_entry_points())

    def __len__(self) -> int:
        return len(_list_entry_points())


@cache
def _list_entry_points() -> Mapping[str, list[EntryPoint]]:
    from importlib.metadata import entry_points  # loads the packages of e-mail and archives

    found: dict[str, list[EntryPoint]] = {}
    repair = "repair or uninstall the package whose entry_points.txt is damaged"
    with translate_errors(
        lambda text: Unsupported(f"file formats of installed packages, whose list {text}", hint=repair)
    ):
        points = entry_points(group=FORMATS)
    for point in points:
        found.setdefault(point.name, []).append(point)
    return found


@cache
def _load_format(name: str) -> FormatIO:
    """Call what the entry point names, and check that it returns a format of this name."""
    points = {describe_package(point): point for point in _list_entry_points()[name]}
    feature = f"file format {name!r}"
    if len(points) > 1:
        raise Unsupported(f"{feature} of several packages ({', '.join(sorted(points))})", hint="uninstall all but one")
    [(package, point)] = points.items()
    repair = "repair or uninstall the package"
    with translate_errors(lambda text: Unsupported(f"{feature} of {package}, which {text}", hint=repair)):
        found = point.load()()
    if not all(hasattr(found, method) for method in _METHODS) or found.identifier != name:
        raise Unsupported(
            f"{feature} of {package}, whose entry point does not return a FormatIO with the identifier {name!r}",
            hint="see paimon.ports.formats.FormatIO",
        )
    return guard_format(found)


def describe_package(point: EntryPoint) -> str:
    """Return the name and the version of the package that has an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
