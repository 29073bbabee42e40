"""Maintenance of tables of Java: none of their files is an orphan, and the remaining rows equal those of Java."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.canonical_rows import rows_of, types_of
from support.case_lists import mark_nightly
from support.golden_replay import Replay, number_steps
from support.golden_tables import GoldenRead, golden_directory, golden_reads

import paimon

HOME = golden_directory()
RETAINED_CASES = [
    "branch_fast_forward", "branches", "changelog_decoupled", "consumers", "expired", "fallback_branch", "rollback",
    "tags", "v07_tags", "v09_tags",
]  # fmt: skip
"""Cases about tags, branches, consumers, expiry, rollback and long-lived changelogs."""
CASES = [
    *RETAINED_CASES, "agg_sum", "append_bucketed_compact", "append_unaware_compacted", "cl_churn_lookup_dv", "cl_full",
    "cl_input", "dv_append", "dv_append_compacted", "dv_pk", "dv_pk_avro_part", "dyn_bucket", "idx_pk_dv_bitmap",
    "part_by_date", "rolling_files", "statistics", "v09_dv", "v09_dynamic",
]  # fmt: skip
LEFT_BY_JAVA = {"branch_fast_forward": (1, 3), "rollback": (2, 6)}
"""Files of data, and of metadata, that Java's own rollback and fast-forward leave as orphans."""
NOW = timedelta(0)
READS = list(golden_reads(HOME))


def open_table(directory: Path, **options: str) -> paimon.Table:
    table = paimon.open_table(directory, options)
    assert isinstance(table, paimon.Table)
    return table


def copy_case(case: str, directory: Path) -> Path:
    return Path(shutil.copytree(HOME / case / "table", directory / "table"))


def list_expected_reads(case: str, directory: Path) -> Iterator[GoldenRead]:
    """The reads of the case's states that still exist."""
    for read in (r for r in READS if r.case == case and r.kind == "rows" and not r.name.startswith("read-")):
        snapshot = read.arguments.get("snapshot")
        tag = read.arguments.get("tag")
        if snapshot is not None and not (directory / "snapshot" / f"snapshot-{snapshot}").exists():
            continue
        if tag is None or (directory / "tag" / f"tag-{tag}").exists():
            yield read


def assert_read(case: str, directory: Path) -> None:
    for read in list_expected_reads(case, directory):
        arguments = dict(read.arguments)
        branch = arguments.pop("branch", "main")
        scan = open_table(directory, branch=branch).scan(**arguments)
        assert rows_of(scan.to_arrow(), types_of(scan.fields)) == read.rows(), read.name


@pytest.mark.parametrize("case", mark_nightly(CASES, always=[*LEFT_BY_JAVA, *CASES[::2]]))
def test_no_file_of_java_is_an_orphan(case: str, tmp_path: Path) -> None:
    directory = copy_case(case, tmp_path)
    found = open_table(directory).maintain.remove_orphans(NOW, dry_run=True)["path"].to_pylist()
    data = [path for path in found if "/bucket-" in path]
    assert (len(data), len(found) - len(data)) == LEFT_BY_JAVA.get(case, (0, 0)), found


@pytest.mark.parametrize("case", mark_nightly(CASES, always=CASES[1::2]))
def test_what_stays_reads_as_before(case: str, tmp_path: Path) -> None:
    directory = copy_case(case, tmp_path)
    table = open_table(directory)
    for name in list(table.consumers):
        table.consumers.delete(name)
    table.maintain.expire_snapshots(retain_max=2)
    assert_read(case, directory)
    table.maintain.expire_snapshots(retain_max=1)
    table.maintain.remove_orphans(NOW, allow_young=True, dry_run=False)
    assert_read(case, directory)
    assert len(table.snapshots()) == 1
    assert table.maintain.check().faults == ()
    for name in list(table.tags):
        table.tags.delete(name)
    assert_read(case, directory)
    assert table.maintain.remove_orphans(NOW, dry_run=True).num_rows == 0


def test_consumers_protect_unread_snapshots(tmp_path: Path) -> None:
    table = open_table(copy_case("consumers", tmp_path))
    assert dict(table.consumers) == {"c1": 4, "c2": 6}
    assert table.maintain.expire_snapshots(retain_max=1).snapshots == 0
    table.consumers.delete("c1")
    assert table.maintain.expire_snapshots(retain_max=1).until == 6
    assert open_table(Path(table.location), **{"consumer.changelog-only": "true"}).maintain.expire_snapshots(
        retain_max=1
    ).until == 7  # fmt: skip


def test_changelogs_stay_until_their_own_time(tmp_path: Path) -> None:
    directory = copy_case("changelog_decoupled", tmp_path)
    table = open_table(directory)
    rows = table.changes().to_arrow().num_rows
    table.maintain.expire_snapshots(retain_max=1)
    assert table.changes().to_arrow().num_rows == rows
    assert table.maintain.expire_changelogs(retain_max=4).until == 4
    assert (directory / "changelog" / "EARLIEST").read_text() == "4"
    assert table.changes().to_arrow()["_snapshot_id"].to_pylist()[0] == 4
    table.maintain.expire_changelogs(delete_all=True)
    assert [path.name for path in (directory / "changelog").iterdir()] == ["EARLIEST"]  # those below have expired
    assert table.maintain.remove_orphans(NOW, dry_run=True).num_rows == 0


def test_a_rollback_brings_back_what_a_tag_keeps(tmp_path: Path) -> None:
    directory = copy_case("tags", tmp_path)
    done = open_table(directory).maintain.rollback_to(tag="t1")
    assert (done.snapshot_id, set(done.tags)) == (1, {"keep-2y", "latest-tag"})
    (at_tag,) = [r for r in READS if (r.case, r.name) == ("tags", "tag-t1")]
    latest = evolve(at_tag, arguments={})
    scan = open_table(directory).scan(**latest.arguments)
    assert rows_of(scan.to_arrow(), types_of(scan.fields)) == at_tag.rows()
    open_table(directory).maintain.remove_orphans(NOW, allow_young=True, dry_run=False)
    assert rows_of(scan.to_arrow(), types_of(scan.fields)) == at_tag.rows()


def test_a_fast_forward_has_the_result_of_java(tmp_path: Path) -> None:
    """Done again on Java's result it changes nothing; the branch may go, and main still has its files."""
    directory = copy_case("branch_fast_forward", tmp_path)
    table = open_table(directory)
    assert table.branches.fast_forward("dev") == 2
    assert_read("branch_fast_forward", directory)
    table.branches.delete("dev")
    table.maintain.remove_orphans(NOW, allow_young=True, dry_run=False)
    (latest,) = [r for r in READS if (r.case, r.name) == ("branch_fast_forward", "latest")]
    scan = table.scan()
    assert rows_of(scan.to_arrow(), types_of(scan.fields)) == latest.rows()


def kinds(directory: Path) -> dict[str, list[str]]:
    """The files of each directory: meaningful names as they are, other files by kind and number."""
    found: dict[str, list[str]] = {}
    for path in directory.rglob("*"):
        folder = str(path.parent.relative_to(directory))
        if path.is_file() and path.name not in ("LATEST", "EARLIEST"):
            meant = folder not in ("manifest", "bucket-0")
            found.setdefault(folder, []).append(path.name if meant else re.sub(r"-?[0-9a-f]{8}-.*", "", path.name))
    return {folder: sorted(names) for folder, names in found.items()}


@pytest.mark.parametrize("case", ["branch_fast_forward", "branches", "changelog_decoupled", "consumers", "expired",
                                  "rollback", "tags"])  # fmt: skip
def test_the_same_steps_leave_the_same_files(case: str, tmp_path: Path) -> None:
    """The case done by us, compactions and all: as many files of each kind as Java's has, and the same rows."""
    replay = replay_case(case, tmp_path / "ours")
    assert kinds(replay.directory) == kinds(HOME / case / "table")
    assert_read(case, replay.directory)


def replay_case(case: str, directory: Path) -> Replay:
    """The case done by us: its writes, and what keeps and removes states."""
    replay = Replay(HOME / case, directory, compacting=True)
    replay.create()
    for number, step in number_steps(json.loads((replay.case / "case.json").read_text("utf8"))["steps"]):
        if step["op"] == "write":
            branch = {"options": {"branch": step["branch"]}} if "branch" in step else {}
            replay.write({**step, **branch}, number)
        elif step["op"] == "alter":
            replay.alter(step, number)
        else:
            MAINTENANCE[step["op"]](replay.table(), step)
    return replay


LIVES = {"PT24H": "24 h", "P730D": "730 d", None: None}
MAINTENANCE: Mapping[str, Callable[[paimon.Table, Mapping[str, Any]], object]] = {
    "createTag": lambda table, step: table.tags.create(
        step["name"], step.get("snapshot"), time_retained=LIVES[step.get("timeRetained")]
    ),
    "deleteTag": lambda table, step: table.tags.delete(step["name"]),
    "createBranch": lambda table, step: table.branches.create(step["name"], step.get("tag")),
    "fastForward": lambda table, step: table.branches.fast_forward(step["name"]),
    "rollback": lambda table, step: table.maintain.rollback_to(step["snapshot"]),
    "consumer": lambda table, step: table.consumers.reset(step["id"], step["nextSnapshot"]),
    "expireSnapshots": lambda table, step: table.maintain.expire_snapshots(
        retain_min=step["retainMin"], retain_max=step["retainMax"]
    ),
}
