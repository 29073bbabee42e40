"""Java reads golden cases that we replay as it reads its own. Then each side continues the table of the other."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from support.canonical_rows import rows_of, types_of
from support.case_lists import mark_nightly
from support.golden_input import KIND
from support.golden_replay import NOTHING_TO_DO, USER, Replay, number_steps
from support.golden_tables import golden_directory
from support.java_paimon import JavaPaimon, canonical

import paimon
from paimon.testing.conformance.golden import rows_to_arrow

pytestmark = pytest.mark.interop

HOME = golden_directory()
STEPS = {"write", "overwrite", "dropPartitions", "truncate", "alter", "postponeCompact", *NOTHING_TO_DO}
LARGE = {"large_append", "large_pk", "pk_many_commits"}
HIDES_LEVEL_0 = {"merge-engine": "first-row", "deletion-vectors.enabled": "true"}
"""Options under which Java shows no row before it was compacted."""

WAITING = {"dv_pk_writeonly_l0"}
"""Level 0 is hidden here until it is compacted, and then it shows."""

KNOWN_DIFFERENCES = {
    "postpone_compacted": "what compacted this case wrote the files of the first commit last; we keep the order",
    "record_expire": "Java's compaction drops expired records, and ours did not run",
    "seq_desc": "Java sorts a flush ascending although the option is descending; we follow the option",
}

NOT_DELETED = {"pk_ignore_delete", "rowkind_field"}
"""Cases whose options ignore deletes, or store them in a column."""

RESCALED = {"rescale_bucket"}
"""Some partitions have an older number of buckets: both sides refuse to write there."""

DYNAMIC = {"dyn_bucket", "cross_partition"}
"""Cases with dynamic buckets, of a partition or of the table."""

POSTPONED = {"postpone", "postpone_compacted"}
"""Cases with postponed buckets: reads show rows only after a compaction."""

NOT_CONTINUED = RESCALED | WAITING | POSTPONED
"""Cases that `java.write` and `compact` do not continue as they continue the others."""

MOST_STATES = 4
"""Of a case with many commits, so many states are compared."""


def definition(case: str) -> Any:
    return json.loads((HOME / case / "case.json").read_text("utf8"))


def replayable(case: str) -> bool:
    """Whether all steps of the case are verbs that we have, on a table that we write."""
    case_json = definition(case)
    schema, options = case_json["schema"], case_json["schema"]["options"]
    steps = case_json.get("steps", [])
    return (
        case not in LARGE
        and bool(steps)
        and all(step["op"] in STEPS and "branch" not in step for step in steps)
        and (not schema["primaryKeys"] or int(options.get("bucket", "-1")) > 0 or case in DYNAMIC | POSTPONED)
        and options.get("file.format") != "json"
        and not any("VARIANT" in json.dumps(field) for field in schema["fields"])
        and options.get("row-tracking.enabled") != "true"
    )


CASES = sorted(p.parent.name for p in HOME.glob("*/input") if replayable(p.parent.name))


def lines(rows: Iterable[str]) -> list[Any]:
    return canonical(json.loads(row) for row in rows)


def read_expected(case: str, name: str = "latest") -> list[Any]:
    return lines((HOME / case / "expected" / f"{name}.jsonl").read_text("utf8").splitlines())


def read_compacted(case: str) -> list[str]:
    """The last row of each key that a postponed case writes, without its kind, if it is not a delete."""
    rows: dict[Any, dict[str, Any]] = {}
    for path in sorted((HOME / case / "input").glob("*.jsonl")):
        rows |= {row["k"]: row for row in map(json.loads, path.read_text("utf8").splitlines())}
    remaining = [row for row in rows.values() if not row.get(KIND, "+I").startswith("-")]
    return [json.dumps({name: value for name, value in row.items() if name != KIND}) for row in remaining]


def read_rows(table: paimon.Table) -> list[Any]:
    return lines(rows_of(table.scan().to_arrow(), types_of(table.table_schema.fields)))


def after_steps(case: str) -> dict[int, str]:
    """The expected rows after some writes, by identifier. A commit of Java may create two snapshots."""
    folder = HOME / case / "table" / "snapshot"
    snapshots = sorted((json.loads(p.read_text("utf8")) for p in folder.glob("snapshot-*")), key=lambda s: int(s["id"]))
    last = {s["commitIdentifier"]: s["id"] for s in snapshots}
    steps = definition(case)["steps"]
    numbers = [n for n, step in number_steps(steps) if step["op"] == "write" and "user" not in step]
    named = {number: f"snapshot-{last[number]}" for number in numbers if number in last}
    stored_states = [n for n, name in named.items() if (HOME / case / "expected" / f"{name}.jsonl").exists()]
    return {number: named[number] for number in stored_states[:: len(stored_states) // MOST_STATES + 1]}


def compacts(case: str) -> bool:
    """Whether rows depend on Java's compactions: rows that only they make visible, changelogs, groupings."""
    schema = definition(case)["schema"]
    options = schema["options"]
    hides = any(options.get(key) == value for key, value in HIDES_LEVEL_0.items())
    produces_changelog = options.get("changelog-producer") in ("lookup", "full-compaction")
    return bool(schema["primaryKeys"]) and (hides or produces_changelog or merge_engine(case) != "deduplicate")


def merge_engine(case: str) -> str:
    return str(definition(case)["schema"]["options"].get("merge-engine", "deduplicate"))


REPLAYED = [case for case in CASES if case not in KNOWN_DIFFERENCES]
KEYED = [case for case in REPLAYED if definition(case)["schema"]["primaryKeys"]]
DELETABLE = [c for c in KEYED if merge_engine(c) == "deduplicate" and c not in NOT_DELETED | NOT_CONTINUED]
APPENDED = [case for case in REPLAYED if case not in KEYED and "evo_" not in case]


DELETED = [case for case in DELETABLE if not compacts(case)]
ADDED_TO = [case for case in APPENDED if not case.startswith("fp_")]


@pytest.mark.parametrize("case", mark_nightly(REPLAYED, always=["agg_sum", "append_unaware_parquet", "cl_lookup_agg",
    "cross_partition", "dv_pk", "dyn_bucket", "types_pk_orc"]))  # fmt: skip
def test_java_reads_our_replay_and_continues(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    """Compare the latest rows, the rows after a commit, and the rows after Java's deletes, appends and compactions."""
    replay = Replay(HOME / case, tmp_path / "t", compacts(case)).run()
    table, directory, latest = replay.table(), replay.directory, read_expected(case)
    assert java.read(directory) == latest
    numbers = {s.commit_identifier: s.id for s in table.snapshots() if s.commit_user == USER}
    for number, name in after_steps(case).items():
        at = {"scan.snapshot-id": str(numbers[number])}
        assert java.read(directory, options=at) == read_expected(case, name), f"after step {number}"
    if case in DELETABLE:
        java.write(
            directory, [{**row, KIND: "-D"} for row in latest[::2]], identifier=1, options={"write-only": "true"}
        )
        latest = latest[1::2]
        if not compacts(case):  # tables that hide level 0, or whose level 0 waits for lookup
            assert read_rows(table) == java.read(directory) == latest
    if case in KEYED and case not in NOT_CONTINUED:
        java.write(directory, [], compact=True, identifier=2, options={"write-only": "false"})
    elif case in POSTPONED:
        table.compact()
        latest = lines(read_compacted(case))
    elif case in APPENDED:
        java.write(directory, latest[:5], identifier=1)
        latest = canonical(latest + latest[:5])
    assert read_rows(table) == java.read(directory) == latest


COMPACTED = [case for case in KEYED if case not in NOT_CONTINUED]


@pytest.mark.parametrize("case", mark_nightly(COMPACTED, always=["agg_collect", "cl_lookup", "cross_partition",
    "dv_pk", "dyn_bucket", "first_row", "types_pk_avro"]))  # fmt: skip
def test_java_reads_its_tables_as_we_compact_them(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    table, directory = opened_copy(case, tmp_path)
    table.compact(full=True)
    assert java.read(directory) == read_rows(table) == read_expected(case)


@pytest.mark.parametrize(
    "case",
    mark_nightly(DELETED, always=["char_key", "cross_partition", "dyn_bucket", "pk_dedup_orc", "types_pk_parquet"]),
)
def test_we_delete_from_tables_of_java(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    rows = read_expected(case)
    table, directory = opened_copy(case, tmp_path)
    gone = rows_to_arrow(rows[::2], table.table_schema.fields)
    table.write(gone.append_column("op", pa.array(["-D"] * len(gone), pa.string())), kind_column="op")
    assert java.read(directory) == read_rows(table) == canonical(rows[1::2])


@pytest.mark.parametrize("case", mark_nightly(ADDED_TO, always=["append_bucketed", "compress_orc_lz4",
    "idx_bitmap_file", "part_by_date", "types_flat_avro", "stats_truncate"]))  # fmt: skip
def test_we_append_to_tables_of_java(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    rows = read_expected(case)
    table, directory = opened_copy(case, tmp_path)
    table.write(rows_to_arrow(rows, table.table_schema.fields))
    assert java.read(directory) == read_rows(table) == canonical(rows + rows)
    table.overwrite(rows_to_arrow(rows[:3], table.table_schema.fields), partition={})
    assert java.read(directory) == read_rows(table) == canonical(rows[:3])


@pytest.mark.parametrize("case", sorted(POSTPONED))
def test_java_reads_the_postponed_rows_that_we_compact(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    table, directory = opened_copy(case, tmp_path)
    table.compact()
    assert java.read(directory) == read_rows(table)
    assert len(read_rows(table)) > len(read_expected(case))


@pytest.mark.parametrize("case", KNOWN_DIFFERENCES)
def test_known_differences_are_differences(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    """Both sides read our files alike. The written files differ."""
    replay = Replay(HOME / case, tmp_path / "t", compacts(case)).run()
    assert java.read(replay.directory) == read_rows(replay.table()) != read_expected(case)


def opened_copy(case: str, tmp_path: Path) -> tuple[paimon.Table, Path]:
    directory = tmp_path / "t"
    shutil.copytree(HOME / case / "table", directory)
    table = paimon.open_table(directory, {"write-only": "true"})
    assert isinstance(table, paimon.Table)
    return table, directory
