"""Open a table by its location."""

from __future__ import annotations

from collections.abc import Mapping

from paimon.domain.errors import NotFound, did_you_mean
from paimon.domain.identifier import Identifier
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_options
from paimon.domain.paths import TablePaths, check_segment
from paimon.domain.schema.change_options import check_dynamic_changes
from paimon.domain.schema.rules.merge import check_dynamic_columns
from paimon.domain.schema.rules.table_type import check_table_type
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.expire.references import list_branch_names
from paimon.operations.metadata.schemas import latest_schema, open_newest_schema, suggest_location
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine


def open_context(
    engine: Engine,
    location: str,
    identifier: Identifier,
    options: Mapping[str, str],
    allowed_roots: tuple[str, ...] = (),
) -> TableContext:
    """Open the table at a location, at the newest schema of its branch.

    `identifier` may name a branch. `options` are dynamic, for this handle only. `allowed_roots` are
    directories outside the table that may contain its files.
    """
    check_options(options, formats=engine.file_formats)
    branch = check_segment(options.get("branch", identifier.branch), "branch name")
    paths = TablePaths(location, branch)
    opened = open_newest_schema(engine, paths)
    if opened is None:
        if branch != "main" and latest_schema(engine, TablePaths(location)) is not None:
            known = did_you_mean(branch, list_branch_names(engine, TablePaths(location)))
            raise NotFound("branch", branch, hint=known or f"table {location!r} has only the branch 'main'")
        raise NotFound("table", location, hint=suggest_location(engine, location))
    schema, origin = opened
    combined = TableOptions.of(schema.options).with_values(options)
    check_table_type(combined, identifier.full_name)
    check_dynamic_columns(schema, options)
    check_dynamic_changes(schema, combined)
    definition = TableDefinition(
        table_name=identifier.full_name,
        paths=paths,
        schema=schema,
        options=combined,
        allowed_roots=tuple(dict.fromkeys((*engine.allowed_roots, *allowed_roots))),
        origin=origin,
    )
    return TableContext(engine, definition)
