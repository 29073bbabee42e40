"""Every read of every golden table returns exactly the rows that Java returns."""

from __future__ import annotations

import json

import pytest
from support.canonical_rows import changes_of, rows_of, text, types_of
from support.case_lists import check_each, mark_nightly
from support.golden_tables import DAILY_TABLES, GoldenRead, golden_directory, golden_reads
from support.known_differences import (
    KNOWN_DIFFERENCES,
    MISSING_FEATURES,
    ListedRead,
    find_known_difference,
    find_missing_feature,
)

import paimon

READS = list(golden_reads(golden_directory()))
IN_REACH = [r for r in READS if find_missing_feature(r) is None and find_known_difference(r) is None]
LATER = [r for r in READS if find_missing_feature(r) is not None]
DIFFERENT = [r for r in READS if find_known_difference(r) is not None]


def read_rows(read: GoldenRead) -> list[str]:
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
    return rows_of(scan.to_arrow(), types_of(scan.fields))


def to_params(reads: list[GoldenRead]) -> list[object]:
    return [pytest.param(read, id=f"{read.case}-{read.name}") for read in reads]


def check_rows(read: GoldenRead) -> None:
    assert read_rows(read) == read.rows()


@pytest.mark.parametrize("case", mark_nightly(dict.fromkeys(read.case for read in IN_REACH), always=DAILY_TABLES))
def test_reads_as_java_reads(case: str) -> None:
    check_each((read for read in IN_REACH if read.case == case), check_rows)


@pytest.mark.parametrize("read", to_params(LATER))
def test_what_is_not_in_reach_is_listed_no_longer_than_true(read: GoldenRead) -> None:
    try:
        found = read_rows(read)
    except Exception:  # whatever a read that we do not support yet ends with
        return
    assert found != read.rows(), (
        f"this read is correct now: remove it from MISSING_FEATURES ({find_missing_feature(read)})"
    )


@pytest.mark.parametrize("read", to_params(DIFFERENT))
def test_known_differences_are_differences(read: GoldenRead) -> None:
    assert read_rows(read) != read.rows(), (
        f"this read is correct now: remove it from KNOWN_DIFFERENCES ({find_known_difference(read)})"
    )


@pytest.mark.parametrize(
    "listed", MISSING_FEATURES + KNOWN_DIFFERENCES, ids=lambda listed: f"{listed.cases[0]}-{listed.reads}"
)
def test_lines_of_the_lists_name_reads(listed: ListedRead) -> None:
    assert any(listed.names(read) for read in READS)


def test_older_tables_differ_only_in_what_is_listed() -> None:
    """The same times without a Z, and the columns of the snapshot's schema."""
    (read,) = [r for r in DIFFERENT if (r.case, r.name) == ("v07_append", "latest")]
    assert [row.replace('"}', 'Z"}') if '"t":"' in row else row for row in read_rows(read)] == read.rows()
    for read in DIFFERENT:
        if read.case.endswith("_evolve"):
            assert [remove_column(row, "bb") for row in read_rows(read)] == read.rows()


def remove_column(row: str, name: str) -> str:
    return text({k: v for k, v in json.loads(row).items() if k != name})
