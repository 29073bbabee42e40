"""The directories below which a table has data files, for the removal of orphan files.

Invariant: a directory outside the table is left out if another table of the warehouse has declared it, too, because no
file there shows which table it belongs to. Source: our own rule; Java deletes the files of the other table.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from functools import partial
from itertools import chain
from typing import TypeAlias

from paimon.domain.errors import PaimonError, PaimonWarning
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import MAIN_BRANCH, TablePaths, is_within, join_path, may_overlap
from paimon.operations.metadata.schemas import load_schema, schema_ids
from paimon.operations.metadata.snapshots import list_branch_directories
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine

_Others: TypeAlias = "tuple[str, AbstractSet[str] | None]"
"""The directory of another table, and its external roots; None if its metadata cannot be read."""


def find_data_roots(context: TableContext, branches: Sequence[TableContext]) -> list[str]:
    """Return the roots of data files by the options of the table, and of all schemas on all branches.

    Warns about a root outside the table that is left out: one of another table, or if another table is unreadable.
    """
    stored = chain.from_iterable(_list_options(branch.engine, branch.paths) for branch in branches)
    options = [context.options, *stored]
    own = dict.fromkeys(context.paths.data_root(o.data_file_path_directory or "") for o in options)
    allowed = context.table.roots
    external = dict.fromkeys(r for o in options for r in _list_external_roots(o) if is_within(r, allowed))
    others = list(_list_roots_of_others(context)) if external else []
    return [*own, *(root for root in external if root not in own and not _is_shared(context, root, others))]


def _is_shared(context: TableContext, root: str, others: Sequence[_Others]) -> bool:
    """Return whether a root overlaps another table's or lies in its directory, and warn; unknown roots (None) may."""
    for location, roots in others:
        if roots is None or is_within(root, [location]) or any(may_overlap(root, other) for other in roots):
            why = f"the metadata of {location!r} cannot be read" if roots is None else f"table {location!r} has it, too"
            text = f"Table {context.table.table_name!r}: orphan files below {root!r} stay, because {why}"
            warnings.warn(text, PaimonWarning, stacklevel=8)
            return True
    return False


def _list_options(engine: Engine, paths: TablePaths) -> Iterator[TableOptions]:
    for schema_id in schema_ids(engine, paths):
        yield TableOptions.of(load_schema(engine, paths, schema_id).options)


def _list_external_roots(options: TableOptions) -> list[str]:
    directory = options.data_file_path_directory or ""
    return [join_path(root, directory) for root in options.data_file_external_paths]


def _list_roots_of_others(context: TableContext) -> Iterator[_Others]:
    """Yield the other tables of the warehouse (or of the parent directory) with their external roots."""
    own = context.table.location
    parent = own.rpartition("/")[0]
    databases = [parent]
    if parent.endswith(".db"):
        found = context.files.list(parent.rpartition("/")[0])
        databases = [status.path for status in found if status.is_directory and status.name.endswith(".db")]
    tables = chain.from_iterable(context.files.list(database) for database in databases)
    locations = [table.path for table in tables if table.is_directory and table.path != own]
    return context.engine.executor.map(partial(_read_external_roots, context.engine), locations)


def _read_external_roots(engine: Engine, location: str) -> _Others:
    """Read the schemas of a table on all its branches."""
    try:
        branches = [MAIN_BRANCH, *list_branch_directories(engine, TablePaths(location))]
        options = chain.from_iterable(_list_options(engine, TablePaths(location, branch)) for branch in branches)
        return location, {root for each in options for root in _list_external_roots(each)}
    except PaimonError:
        return location, None
