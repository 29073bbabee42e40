"""Every read of every golden table answers exactly what Java answers."""

from __future__ import annotations

import pytest
from golden_tables import GoldenRead, golden_directory, golden_reads
from not_yet import unreached
from rendering import changes_of, rows_of, types_of

import paimon
from paimon.domain.types.data_types import DataType

HOME = golden_directory()
READS = list(golden_reads(HOME))


def answer(read: GoldenRead) -> list[str]:
    arguments = dict(read.arguments)
    options = dict(arguments.pop("options", {}))
    if "branch" in arguments:
        options["branch"] = arguments.pop("branch")
    system = read.kind.partition(":")[2]
    table = paimon.open_table(f"{read.table}${system}" if system else read.table, options)
    if read.kind == "changes":
        assert isinstance(table, paimon.Table)
        return changes_of(table.changes(**arguments).to_arrow(), types_of(table.table_schema.fields))
    scan = table.scan(**arguments)
    assert isinstance(scan, paimon.Scan)
    types: dict[str, DataType] = types_of(scan.fields)
    return rows_of(scan.to_arrow(), types)


@pytest.mark.parametrize("read", [r for r in READS if unreached(r) is None], ids=lambda r: f"{r.case}-{r.name}")
def test_reads_as_java_reads(read: GoldenRead) -> None:
    assert answer(read) == read.rows()


def test_the_list_of_what_is_not_reached_names_real_cases() -> None:
    assert {r.case for r in READS} >= {r.case for r in READS if unreached(r)}
    assert sum(unreached(r) is None for r in READS) > 100
