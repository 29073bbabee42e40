"""System tables show what Java's show, column by column, and open by name and by path."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest
from golden_tables import golden_directory
from system_golden import expected_tables, normal, shown

import paimon
from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.domain.types.arrow import fields_from_arrow
from paimon.operations.read.system.registry import SYSTEM_TABLES

HOME = golden_directory()
EXPECTED = expected_tables()


def opened(case: str, name: str, **options: object) -> paimon.SystemTable:
    table = paimon.open_table(HOME / case / f"table${name}", options)
    assert isinstance(table, paimon.SystemTable)
    return table


@pytest.mark.parametrize(("case", "name"), sorted(k for k in EXPECTED if k[1] in SYSTEM_TABLES), ids="-".join)
def test_metadata_is_shown_as_java_shows_it(case: str, name: str) -> None:
    rows = opened(case, name).scan().to_arrow()
    answer = shown(rows, fields_from_arrow(rows.schema), HOME / case / "table")
    assert answer == normal(EXPECTED[case, name])


def test_every_system_table_is_compared() -> None:
    assert {name for _, name in EXPECTED} >= set(SYSTEM_TABLES)
