"""Run CALL: find the table that the first argument names, and run the procedure."""

from __future__ import annotations

import pyarrow as pa

from paimon.procedures.arguments import bind_arguments
from paimon.procedures.registry import (
    HELP,
    REPAIR,
    TABLE,
    call_help,
    call_procedure,
    find_procedure,
    split_table_argument,
)
from paimon.sql.parse.statements import Call, TableName
from paimon.sql.session import Session


def run_call(session: Session, statement: Call) -> pa.Table:
    """Run a procedure, and return its result as rows."""
    if statement.procedure == HELP:
        return call_help(statement.positional, statement.named)
    if statement.procedure == REPAIR:
        bound = bind_arguments(REPAIR, (TABLE,), statement.positional, statement.named)
        place = session.locate(tuple(bound["table"].split(".")))
        return pa.table({"table": [place.catalog.repair_table(place.name).name]})
    procedure = find_procedure(statement.procedure)
    name, named = split_table_argument(procedure, statement.positional, statement.named)
    table = session.distribute(session.open_table(TableName(tuple(name.split(".")))))
    return call_procedure(table, procedure.name, (), named)
