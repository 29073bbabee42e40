"""Plans are cached by snapshot and request: a repeated plan reads nothing, and another request or state is planned."""

from __future__ import annotations

from pathlib import Path

import pytest

import paimon
from paimon.domain.errors import PaimonError


def test_a_repeated_plan_is_the_same_value_and_needs_no_manifest(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id INT, day STRING", partition_keys=["day"])
    table.write([{"id": 1, "day": "a"}, {"id": 2, "day": "b"}])
    first = table.scan(where="id = 1").plan()
    assert table.scan(where="id = 1").plan() is first
    assert [split.row_count for split in table.scan(where="id = 2").plan().splits] == [1]
    assert len(table.scan().plan().splits) == 2
    table.write([{"id": 1, "day": "c"}])
    assert len(table.scan(where="id = 1").plan().splits) == 2
    assert len(table.with_options({"scan.snapshot-id": "1"}).scan(where="id = 1").plan().splits) == 1


def test_a_table_of_the_same_name_has_other_plans(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    for rows in (1, 2):
        table = catalog.create_table("d.t", "id INT")
        table.write([{"id": i} for i in range(rows)])
        assert table.scan().plan().row_count == rows
        catalog.drop_table("d.t")


def test_another_engine_does_not_see_the_plans(tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "id INT")
    table.write([{"id": 1}])
    table.scan().plan()
    for manifest in (tmp_path / "d.db" / "t" / "manifest").iterdir():
        manifest.unlink()
    with pytest.raises(PaimonError):
        paimon.connect(tmp_path).table("d.t").scan().plan()
