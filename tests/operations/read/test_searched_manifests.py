"""Plans of few partitions decode only those blocks of large manifests that contain them."""

from __future__ import annotations

import pytest

import paimon
from paimon.domain.commit.message import CommitMessage, DataIncrement
from paimon.domain.commit.request import CommitRequest
from paimon.domain.manifest.entries import DataFileMeta
from paimon.domain.row.binary_row import serialize
from paimon.domain.scan.scan_plan import Plan
from paimon.operations.commit.commit import commit
from paimon.operations.metadata import manifests
from paimon.table import Table

_PARTITIONS = 1_000
_LONG_TEXT = "a text of more than seven bytes"


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Table:
    """A table of 1,000 files in 1,000 partitions, of which every tenth was deleted."""
    catalog = paimon.connect(tmp_path_factory.mktemp("searched"))
    catalog.create_database("d")
    table = catalog.create_table("d.t", "v INT, n INT, day STRING", partition_keys=["n", "day"])
    added = [_change_file(table, n) for n in range(_PARTITIONS)]
    commit(table.context, CommitRequest(tuple(added), "test"))
    deleted = [_change_file(table, n, is_deleted=True) for n in range(0, _PARTITIONS, 10)]
    commit(table.context, CommitRequest(tuple(deleted), "test"))
    return table


def _change_file(table: Table, n: int, is_deleted: bool = False) -> CommitMessage:
    partition = serialize((n, f"{n % 3} {_LONG_TEXT}"), [f.type for f in table.context.schema.partition_fields])
    files = (DataFileMeta(f"data-{n}.parquet", 1_000, 1),)
    change = DataIncrement(deleted_files=files) if is_deleted else DataIncrement(new_files=files)
    return CommitMessage(partition, 0, -1, f"{table.location}/n={n}/bucket-0", change)


def _list_files(plan: Plan) -> list[str]:
    return sorted(file.file_name for split in plan.splits for file in split.files)


@pytest.mark.parametrize(("where", "is_searched"), [
    (f"n = 501 and day = '0 {_LONG_TEXT}'", True),
    (f"n in (1, 999) and day in ('1 {_LONG_TEXT}', '0 {_LONG_TEXT}') and v = 5", True),
    (f"n = 500 and day = '2 {_LONG_TEXT}'", True),  # a deleted file
    ("n = 501", False),
    (f"n > 998 and day = '0 {_LONG_TEXT}'", False),
    (f"n in (1, 2, 4, 5, 999) and day = '0 {_LONG_TEXT}'", False),
])  # fmt: skip
def test_a_plan_of_few_partitions_decodes_their_blocks(
    table: Table, monkeypatch: pytest.MonkeyPatch, where: str, is_searched: bool
) -> None:
    expected = table.scan(where=where).plan()
    fresh = paimon.open_table(table.location)
    monkeypatch.setattr(manifests, "_SEARCHED_BYTES", 1)
    found = fresh.scan(where=where).plan()
    assert found.splits == expected.splits
    decoded = next(step.before for step in found.steps if step.name == "partitions")
    assert (decoded < _PARTITIONS * 9 // 10) is is_searched
    assert len(_list_files(fresh.scan().plan())) == _PARTITIONS * 9 // 10  # parts of manifests are not cached
