"""The procedures by name, and the list that ``CALL sys.help()`` returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from paimon.domain.errors import NotFound, Unsupported, did_you_mean
from paimon.procedures.arguments import TEXT, Parameter, bind_arguments
from paimon.procedures.table_procedures import TABLE_PROCEDURES, Procedure, ProcedureTable

PROCEDURES: Mapping[str, Procedure] = {procedure.name: procedure for procedure in TABLE_PROCEDURES}
"""The procedures of tables by name."""
TABLE = Parameter("table", TEXT, "the table, as database.table", required=True)
"""The first parameter of each procedure of a table."""
_PROCEDURE = Parameter("procedure", TEXT, "the name of a procedure")
HELP, REPAIR = "help", "repair"
"""The procedures without a table: the list of procedures, and the registration of a table whose files exist."""
_OTHERS: Mapping[str, tuple[str, tuple[Parameter, ...]]] = {
    HELP: ("list the procedures", (_PROCEDURE,)),
    REPAIR: ("register a table whose files exist in the catalog", (TABLE,)),
}

_ONLY_JAVA = frozenset({
    "alter_view_dialect", "analyze", "clone", "compact_database", "compact_manifest", "copy", "create_function",
    "alter_function", "data_evolution_merge_into", "delete", "drop_function", "drop_global_index",
    "create_global_index", "mark_partition_done", "materialize_deletion_vectors", "merge_into", "migrate_database",
    "migrate_file", "migrate_iceberg_table", "migrate_table", "purge_files", "reassign_row_id",
    "remove_unexisting_files", "remove_unexisting_manifests", "repair_earliest_snapshot", "rewrite_file_index",
    "trigger_tag_automatic_creation", "update",
})  # fmt: skip
"""Procedures of Java that this library lacks."""


def find_procedure(name: str) -> Procedure:
    """Return the procedure of a name, with or without ``sys.``.

    Unsupported means that Java has the procedure, and this library lacks it. The hint of NotFound is the most similar
    name.
    """
    bare = name.lower().removeprefix("sys.")
    if bare in _ONLY_JAVA - PROCEDURES.keys():
        raise Unsupported(f"procedure {bare!r}", hint="CALL sys.help() lists the procedures")
    if bare not in PROCEDURES:
        raise NotFound("procedure", name, hint=did_you_mean(bare, [*PROCEDURES, *_OTHERS]))
    return PROCEDURES[bare]


def call_procedure(
    table: ProcedureTable, name: str, positional: Sequence[object], named: Mapping[str, object]
) -> pa.Table:
    """Run a procedure of a table, such as ``sys.compact``, and return what it did.

    `positional` are values in the order of the parameters after `table`.
    """
    if name.lower().removeprefix("sys.") == HELP:
        return call_help(positional, named)
    procedure = find_procedure(name)
    return procedure.run(table, bind_arguments(procedure.name, procedure.parameters, positional, named))


def call_help(positional: Sequence[object], named: Mapping[str, object]) -> pa.Table:
    """List all procedures, or the parameters of the one that is named."""
    bound = bind_arguments(HELP, (_PROCEDURE,), positional, named)
    return describe_parameters(bound[_PROCEDURE.name]) if bound else list_procedures()


def split_table_argument(
    procedure: Procedure, positional: Sequence[object], named: Mapping[str, object]
) -> tuple[str, dict[str, Any]]:
    """Separate the name of the table from the other arguments.

    `positional` are values in the order of the parameters, the table first.
    """
    bound = bind_arguments(procedure.name, (TABLE, *procedure.parameters), positional, named)
    return bound.pop(TABLE.name), bound


def list_procedures(names: Iterable[str] | None = None) -> pa.Table:
    """Return a table of procedures: `procedure`, `parameters` and `effect`; optional parameters are in brackets."""
    chosen = sorted(PROCEDURES.keys() | _OTHERS.keys()) if names is None else sorted(names)
    rows = [_describe(name) for name in chosen]
    schema = pa.schema([(name, pa.string()) for name in ("procedure", "parameters", "effect")])
    return pa.Table.from_pylist(rows, schema=schema)


def _describe(name: str) -> dict[str, str]:
    if name in _OTHERS:
        effect, parameters = _OTHERS[name]
    else:
        effect, parameters = PROCEDURES[name].help, (TABLE, *PROCEDURES[name].parameters)
    texts = [f"{p.name} {p.type}" if p.required else f"[{p.name} {p.type}]" for p in parameters]
    return {"procedure": f"sys.{name}", "parameters": ", ".join(texts), "effect": effect}


def describe_parameters(name: str) -> pa.Table:
    """Return the parameters of one procedure: `parameter`, `type`, `required` and `meaning`."""
    bare = name.lower().removeprefix("sys.")
    parameters = _OTHERS[bare][1] if bare in _OTHERS else (TABLE, *find_procedure(name).parameters)
    rows = [{"parameter": p.name, "type": p.type, "required": p.required, "meaning": p.help} for p in parameters]
    schema = pa.schema(
        [("parameter", pa.string()), ("type", pa.string()), ("required", pa.bool_()), ("meaning", pa.string())]
    )
    return pa.Table.from_pylist(rows, schema=schema)
