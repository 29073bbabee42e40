"""Golden cases replayed by us read in Java as its own do; then each side goes on where the other stopped."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from golden_input import KIND, arrow_rows
from golden_replay import NOTHING_TO_DO, USER, Replay, numbered
from golden_tables import golden_directory
from java_paimon import JavaPaimon, canonical
from rendering import rows_of, types_of

import paimon

pytestmark = pytest.mark.interop

HOME = golden_directory()
STEPS = {"write", "overwrite", "dropPartitions", "truncate", "alter", *NOTHING_TO_DO}
LARGE = {"large_append", "large_pk", "pk_many_commits"}
HIDES_LEVEL_0 = {"merge-engine": "first-row", "deletion-vectors.enabled": "true"}
"""Options under which Java shows no row before it was compacted."""

WAITING = {"dv_pk_writeonly_l0"}
"""Level 0 is hidden here until it is compacted, and then it shows."""

OTHERS_BUSINESS = {"pk_clustering"}
"""What we neither write nor compact as Java does."""

KNOWN_DIFFERENCES = {
    "record_expire": "Java's compaction drops expired records, and ours did not run",
    "seq_desc": "Java sorts a flush ascending although the option says descending; we follow the option",
}

NOT_DELETED = {"pk_ignore_delete", "rowkind_field"}
"""Cases whose options say that a delete is none, or that a column holds it."""

RESCALED = {"rescale_bucket"}
"""Some partitions have an older number of buckets: both sides refuse to write there."""

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
        and case not in OTHERS_BUSINESS
        and (not schema["primaryKeys"] or int(options.get("bucket", "-1")) > 0)
        and options.get("file.format") != "json"
        and not any("VARIANT" in json.dumps(field) for field in schema["fields"])
        and options.get("row-tracking.enabled") != "true"
    )


CASES = sorted(p.parent.name for p in HOME.glob("*/input") if replayable(p.parent.name))


def lines(rows: Iterable[str]) -> list[Any]:
    return canonical(json.loads(row) for row in rows)


def expected(case: str, name: str = "latest") -> list[Any]:
    return lines((HOME / case / "expected" / f"{name}.jsonl").read_text("utf8").splitlines())


def ours(table: paimon.Table) -> list[Any]:
    return lines(rows_of(table.scan().to_arrow(), types_of(table.table_schema.fields)))


def after_steps(case: str) -> dict[int, str]:
    """The expected rows after some writes, by identifier; a commit of Java may make two snapshots."""
    folder = HOME / case / "table" / "snapshot"
    snapshots = sorted((json.loads(p.read_text("utf8")) for p in folder.glob("snapshot-*")), key=lambda s: int(s["id"]))
    last = {s["commitIdentifier"]: s["id"] for s in snapshots}
    steps = definition(case)["steps"]
    numbers = [n for n, step in numbered(steps) if step["op"] == "write" and "user" not in step]
    named = {number: f"snapshot-{last[number]}" for number in numbers if number in last}
    kept = [n for n, name in named.items() if (HOME / case / "expected" / f"{name}.jsonl").exists()]
    return {number: named[number] for number in kept[:: len(kept) // MOST_STATES + 1]}


def compacts(case: str) -> bool:
    """Whether what Java wrote tells of its compactions: rows that they alone show, changelogs, groupings."""
    schema = definition(case)["schema"]
    options = schema["options"]
    hides = any(options.get(key) == value for key, value in HIDES_LEVEL_0.items())
    telling = options.get("changelog-producer") in ("lookup", "full-compaction")
    return bool(schema["primaryKeys"]) and (hides or telling or merge_engine(case) != "deduplicate")


def merge_engine(case: str) -> str:
    return str(definition(case)["schema"]["options"].get("merge-engine", "deduplicate"))


REPLAYED = [case for case in CASES if case not in KNOWN_DIFFERENCES]
KEYED = [case for case in REPLAYED if definition(case)["schema"]["primaryKeys"]]
DELETABLE = [c for c in KEYED if merge_engine(c) == "deduplicate" and c not in NOT_DELETED | RESCALED | WAITING]
APPENDED = [case for case in REPLAYED if case not in KEYED and "evo_" not in case]


@pytest.mark.parametrize("case", REPLAYED)
def test_java_reads_our_replay_and_goes_on(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    """The latest rows, those after a commit, and what Java's deletes, appends and compactions make of them."""
    replay = Replay(HOME / case, tmp_path / "t", compacts(case)).run()
    table, directory, latest = replay.table(), replay.directory, expected(case)
    assert java.read(directory) == latest
    numbers = {s.commit_identifier: s.id for s in table.snapshots() if s.commit_user == USER}
    for number, name in after_steps(case).items():
        at = {"scan.snapshot-id": str(numbers[number])}
        assert java.read(directory, options=at) == expected(case, name), f"after step {number}"
    if case in DELETABLE:
        java.write(
            directory, [{**row, KIND: "-D"} for row in latest[::2]], identifier=1, options={"write-only": "true"}
        )
        latest = latest[1::2]
        if not compacts(case):  # where level 0 is hidden, or waits for its lookup
            assert ours(table) == java.read(directory) == latest
    if case in KEYED and case not in RESCALED | WAITING:
        java.write(directory, [], compact=True, identifier=2, options={"write-only": "false"})
    elif case in APPENDED:
        java.write(directory, latest[:5], identifier=1)
        latest = canonical(latest + latest[:5])
    assert ours(table) == java.read(directory) == latest


@pytest.mark.parametrize("case", [case for case in KEYED if case not in RESCALED | WAITING])
def test_java_reads_its_tables_as_we_compact_them(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    table, directory = opened_copy(case, tmp_path)
    table.compact(full=True)
    assert java.read(directory) == ours(table) == expected(case)


@pytest.mark.parametrize("case", [case for case in DELETABLE if not compacts(case)])
def test_we_delete_from_tables_of_java(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    rows = expected(case)
    table, directory = opened_copy(case, tmp_path)
    gone = arrow_rows(rows[::2], table.table_schema.fields)
    table.write(gone.append_column("op", pa.array(["-D"] * len(gone), pa.string())), kind_column="op")
    assert java.read(directory) == ours(table) == canonical(rows[1::2])


@pytest.mark.parametrize("case", [case for case in APPENDED if not case.startswith("fp_")])
def test_we_append_to_tables_of_java(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    rows = expected(case)
    table, directory = opened_copy(case, tmp_path)
    table.write(arrow_rows(rows, table.table_schema.fields))
    assert java.read(directory) == ours(table) == canonical(rows + rows)
    table.overwrite(arrow_rows(rows[:3], table.table_schema.fields), partition={})
    assert java.read(directory) == ours(table) == canonical(rows[:3])


@pytest.mark.parametrize("case", KNOWN_DIFFERENCES)
def test_known_differences_are_differences(java: JavaPaimon, tmp_path: Path, case: str) -> None:
    """Both sides read our files alike; it is what was written that differs."""
    replay = Replay(HOME / case, tmp_path / "t", compacts(case)).run()
    assert java.read(replay.directory) == ours(replay.table()) != expected(case)


def opened_copy(case: str, tmp_path: Path) -> tuple[paimon.Table, Path]:
    directory = tmp_path / "t"
    shutil.copytree(HOME / case / "table", directory)
    table = paimon.open_table(directory, {"write-only": "true"})
    assert isinstance(table, paimon.Table)
    return table, directory
