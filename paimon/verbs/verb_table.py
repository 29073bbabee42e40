"""All verbs, those of CALL by their names, and the lists that ``CALL sys.help()`` returns.

Source: names and parameters of CALL are those of Java's procedures; a parameter without effect here does not exist.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa

from paimon.domain.errors import NotFound, Unsupported, did_you_mean
from paimon.verbs.arguments import bind_arguments, complete_arguments
from paimon.verbs.expiry_verbs import EXPIRY_VERBS
from paimon.verbs.file_verbs import FILE_VERBS
from paimon.verbs.health_verbs import HEALTH_VERBS
from paimon.verbs.index_verbs import INDEX_VERBS
from paimon.verbs.reference_verbs import REFERENCE_VERBS
from paimon.verbs.repair_verbs import REPAIR_VERBS
from paimon.verbs.transfer_verbs import TRANSFER_VERBS
from paimon.verbs.verb import CommandGroup, Parameter, Type, Verb, VerbTable

VERBS: Sequence[Verb[Any]] = (
    *FILE_VERBS,
    *INDEX_VERBS,
    *HEALTH_VERBS,
    *REPAIR_VERBS,
    *TRANSFER_VERBS,
    *REFERENCE_VERBS,
    *EXPIRY_VERBS,
)
"""The table of verbs, in the order of the terminal."""
COMMAND_GROUPS = (
    CommandGroup(
        "tag",
        "manage tags, which protect snapshots from expiry: list, get, create, replace, rename, create-due, delete",
        "paimon tag create lake/default.db/orders year-end --retain '730 d'",
    ),
    CommandGroup(
        "branch",
        "manage branches, which are separate histories over the same files: list, create, rename, delete, fast-forward",
        "paimon branch create lake/default.db/orders trial --tag year-end",
    ),
    CommandGroup(
        "consumer",
        "manage consumers, which protect unread snapshots from expiry: list, reset, delete, clear, expire",
        "paimon consumer reset lake/default.db/orders dashboard 12",
    ),
    CommandGroup(
        "expire",
        "remove old snapshots, changelogs, tags or partitions, by the table options or by arguments",
        "paimon expire snapshots lake/default.db/orders --retain-max 20 --older-than '7 d'",
    ),
)
PROCEDURES: Mapping[str, Verb[Any]] = {verb.name: verb for verb in VERBS if verb.in_call and not verb.of_catalog}
"""The verbs of tables that CALL offers, by name."""
CATALOG_PROCEDURES: Mapping[str, Verb[Any]] = {verb.name: verb for verb in VERBS if verb.in_call and verb.of_catalog}
"""The verbs of catalogs that CALL offers, by name."""
TABLE = Parameter("table", Type.TEXT, "the table, as database.table", required=True)
"""The first parameter of each verb of a table in CALL."""
HELP = "help"
_PROCEDURE = Parameter("procedure", Type.TEXT, "the name of a procedure")
_OTHERS: Mapping[str, tuple[str, tuple[Parameter, ...]]] = {
    HELP: ("list the procedures", (_PROCEDURE,)),
    **{name: (verb.help, verb.parameters) for name, verb in CATALOG_PROCEDURES.items()},
}
"""What CALL offers without a table: the help and the parameters."""

_ONLY_JAVA = frozenset({
    "alter_view_dialect", "create_function",
    "alter_function", "data_evolution_merge_into", "delete", "drop_function", "materialize_deletion_vectors",
    "merge_into", "migrate_database", "migrate_file", "migrate_iceberg_table", "reassign_row_id", "update",
})  # fmt: skip
"""Procedures of Java that this library lacks."""


def find_procedure(name: str) -> Verb[Any]:
    """Return the verb of a table by its name, with or without ``sys.``.

    Unsupported means that Java has the procedure, and this library lacks it. The hint of NotFound is the most similar
    name.
    """
    bare = name.lower().removeprefix("sys.")
    if bare in _ONLY_JAVA - PROCEDURES.keys():
        raise Unsupported(f"procedure {bare!r}", hint="CALL sys.help() lists the procedures")
    if bare not in PROCEDURES:
        raise NotFound("procedure", name, hint=did_you_mean(bare, [*PROCEDURES, *_OTHERS]))
    return PROCEDURES[bare]


def call_verb(table: VerbTable, name: str, positional: Sequence[object], named: Mapping[str, object]) -> pa.Table:
    """Run a verb such as ``sys.compact``, and return rows; `positional` values follow `table`."""
    if name.lower().removeprefix("sys.") == HELP:
        return call_help(positional, named)
    verb = find_procedure(name)
    return run_verb(verb, table, bind_arguments(verb.name, verb.call_parameters, positional, named))


def run_verb(verb: Verb[Any], table: VerbTable, given: Mapping[str, object]) -> pa.Table:
    """Run a verb on a table with bound arguments, and return its result as rows."""
    return verb.to_arrow(verb.run(table, *complete_arguments(verb, given)))


def split_table_argument(
    verb: Verb[Any], positional: Sequence[object], named: Mapping[str, object]
) -> tuple[str, dict[str, object]]:
    """Bind CALL's arguments, the table first, and separate its name from the others."""
    bound = bind_arguments(verb.name, (TABLE, *verb.call_parameters), positional, named)
    return str(bound.pop(TABLE.name)), bound


def call_help(positional: Sequence[object], named: Mapping[str, object]) -> pa.Table:
    """List all procedures, or the parameters of the one that is named."""
    bound = bind_arguments(HELP, (_PROCEDURE,), positional, named)
    return describe_parameters(str(bound[_PROCEDURE.name])) if bound else list_procedures()


def list_procedure_names() -> list[str]:
    """Return the names of all procedures, without ``sys.``."""
    return sorted(PROCEDURES.keys() | _OTHERS.keys())


def list_call_parameters(name: str) -> tuple[str, tuple[Parameter, ...]]:
    """Return what a procedure of CALL does, and its parameters; NotFound if there is none."""
    bare = name.lower().removeprefix("sys.")
    if bare in _OTHERS:
        return _OTHERS[bare]
    verb = find_procedure(name)
    return verb.help, (TABLE, *verb.call_parameters)


def list_procedures(names: Iterable[str] | None = None) -> pa.Table:
    """Return a table of procedures: `procedure`, `parameters` and `effect`; optional parameters are in brackets."""
    chosen = list_procedure_names() if names is None else sorted(names)
    rows = [_describe(name) for name in chosen]
    schema = pa.schema([(name, pa.string()) for name in ("procedure", "parameters", "effect")])
    return pa.Table.from_pylist(rows, schema=schema)


def _describe(name: str) -> dict[str, str]:
    effect, parameters = list_call_parameters(name)
    texts = [f"{p.call_name} {p.type.label}" for p in parameters]
    listed = [text if p.required else f"[{text}]" for p, text in zip(parameters, texts, strict=True)]
    return {"procedure": f"sys.{name}", "parameters": ", ".join(listed), "effect": effect}


def describe_parameters(name: str) -> pa.Table:
    """Return the parameters of one procedure: `parameter`, `type`, `required` and `meaning`."""
    _, parameters = list_call_parameters(name)
    rows = [
        {"parameter": p.call_name, "type": p.type.label, "required": p.required, "meaning": p.help} for p in parameters
    ]
    schema = pa.schema(
        [("parameter", pa.string()), ("type", pa.string()), ("required", pa.bool_()), ("meaning", pa.string())]
    )
    return pa.Table.from_pylist(rows, schema=schema)
