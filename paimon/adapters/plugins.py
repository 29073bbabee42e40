"""Adapters that installed packages offer as entry points: file formats, storages, catalogs and query engines.

Invariant: a package is imported only when a table, a location or an option names what it offers. It cannot replace an
adapter of the library.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from attrs import frozen

from paimon.adapters.guarded import guard_catalog_store, guard_files, guard_format, guard_queries, translate_errors
from paimon.domain.errors import Unsupported, did_you_mean
from paimon.domain.secrets import redact_secrets
from paimon.ports.catalogs import CatalogStore
from paimon.ports.files import FileIO
from paimon.ports.formats import FormatIO
from paimon.ports.queries import QueryEngine

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@frozen
class Offer:
    """A group of entry points: what each offers, and the port that it returns."""

    group: str
    noun: str
    port: type


FORMATS = Offer("paimon.formats", "file format", FormatIO)
STORAGES = Offer("paimon.storages", "storage", FileIO)
CATALOGS = Offer("paimon.catalogs", "metastore", CatalogStore)
QUERY_ENGINES = Offer("paimon.query_engines", "query engine", QueryEngine)


class InstalledFormats(Mapping[str, FormatIO]):
    """The formats of installed packages by name, each imported on first use."""

    def __getitem__(self, name: str) -> FormatIO:
        if name not in list_offers(FORMATS):
            raise KeyError(name)
        return _load_format(name)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name in list_offers(FORMATS) and _load_format(name) is not None

    def __iter__(self) -> Iterator[str]:
        return iter(list_offers(FORMATS))

    def __len__(self) -> int:
        return len(list_offers(FORMATS))


@cache
def _load_format(name: str) -> FormatIO:
    found, package = _make(FORMATS, name, (), {})
    if found.identifier != name:
        raise Unsupported(
            f"file format {name!r} of {package}, whose identifier is {found.identifier!r}",
            hint="repair or uninstall the package",
        )
    return guard_format(found)


def open_storage(scheme: str, location: str, options: Mapping[str, object], single_writer: bool) -> FileIO:
    """Return the storage of a package for URLs of a scheme. With `single_writer`, no trial shows whether it is safe."""
    return guard_files(_make(STORAGES, scheme, (location, dict(options)), options)[0], single_writer=single_writer)


def open_catalog(metastore: str, files: FileIO, warehouse: str, options: Mapping[str, str]) -> CatalogStore:
    """Return the catalog of a package for a warehouse."""
    return guard_catalog_store(_make(CATALOGS, metastore, (files, warehouse, dict(options)), options)[0])


def open_queries(name: str, memory_bytes: int, threads: int) -> QueryEngine:
    """Return the query engine of a package."""
    return guard_queries(_make(QUERY_ENGINES, name, (memory_bytes, threads), {})[0])


@cache
def list_offers(offer: Offer) -> Mapping[str, list[EntryPoint]]:
    """Return the entry points of installed packages by name. No package is imported."""
    from importlib.metadata import entry_points  # loads the packages of e-mail and archives

    found: dict[str, list[EntryPoint]] = {}
    repair = "repair or uninstall the package whose entry_points.txt is damaged"
    with translate_errors(
        lambda text: Unsupported(f"{offer.noun}s of installed packages, whose list {text}", hint=repair)
    ):
        points = entry_points(group=offer.group)
    for point in points:
        found.setdefault(point.name, []).append(point)
    return found


def _make(offer: Offer, name: str, given: tuple[Any, ...], secret: Mapping[str, object]) -> tuple[Any, str]:
    """Call what an entry point names. Return its object, which has the methods of the port, and its package."""
    points = {describe_package(point): point for point in list_offers(offer).get(name, ())}
    feature = f"{offer.noun} {name!r}"
    if not points:
        hint = did_you_mean(name, list_offers(offer)) or f"install the package that offers it in {offer.group!r}"
        raise Unsupported(feature, hint=hint)
    if len(points) > 1:
        raise Unsupported(f"{feature} of several packages ({', '.join(sorted(points))})", hint="uninstall all but one")
    [(package, point)] = points.items()
    port = f"{offer.port.__module__}.{offer.port.__name__}"

    def explain(text: str) -> Unsupported:
        """Return the error about what the package raised, without secrets of the caller."""
        return Unsupported(
            f"{feature} of {package}, which {redact_secrets(text, secret)}", hint="repair or uninstall the package"
        )

    with translate_errors(explain, keep_cause=not secret):
        try:
            found = point.load()(*given)
        except SystemExit as end:
            raise explain(f"raised SystemExit: {end}") from None
        missing = sorted(member for member in _list_members(offer.port) if not hasattr(found, member))
    if missing:
        hint = f"install a version of the package for this version of paimon-lake; see {port}"
        raise Unsupported(f"{feature} of {package}, whose {type(found).__name__} lacks {', '.join(missing)}", hint=hint)
    return found, package


def _list_members(port: type) -> set[str]:
    kinds = [kind for kind in port.__mro__ if kind.__module__.startswith("paimon.")]
    return {name for kind in kinds for name in vars(kind) if not name.startswith("_")}


def describe_package(point: EntryPoint) -> str:
    """Return the name and the version of the package that has an entry point."""
    return f"{point.dist.name} {point.dist.version}" if point.dist is not None else point.value
