"""The doctor on real tables: each kind of finding, each suggested command runs and repairs, and no row changes."""

from __future__ import annotations

import os
import shlex
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from support.case_lists import mark_products

import paimon
from paimon.adapters.observers import CountingObserver
from paimon.cli.main import main
from paimon.display.health_picture import draw_svg, to_picture_columns
from paimon.domain.maintenance import assess_health
from paimon.domain.maintenance.health import FindingKind, TableHealth
from paimon.operations.maintenance import repair
from paimon.operations.table_context import TableContext
from paimon.verbs.health_verbs import to_command, to_health_rows

TINY = {"target-file-size": "1 kb"}
RETAINING = {
    "snapshot.num-retained.min": "50", "snapshot.num-retained.max": "50", "changelog.num-retained.min": "50",
    "changelog.num-retained.max": "50",
}  # fmt: skip
FEW = {"snapshot.num-retained.min": "1", "snapshot.num-retained.max": "2", "snapshot.expire.limit": "1"}


def create(folder: Path, options: dict[str, str], **layout: Any) -> paimon.Table:
    catalog = paimon.connect(folder)
    catalog.create_database("s")
    return catalog.create_table("s.t", "k INT NOT NULL, day STRING NOT NULL, v STRING", options=options, **layout)


def write(table: paimon.Table, commits: int = 6, rows: int = 1, day: str | None = None, **options: str) -> None:
    """Make commits of new keys, on two days in turn."""
    writer = table.with_options({"write-only": "true", **RETAINING, **options})
    for number in range(commits):
        keys = range(number * rows, (number + 1) * rows)
        writer.write([{"k": k, "day": day or f"d{number % 2}", "v": f"v{k % 10}"} for k in keys])


def make_small_files(folder: Path) -> paimon.Table:
    table = create(folder, {}, partition_keys=["day"])
    write(table, 12)
    return table


def make_small_files_of_levels(folder: Path) -> paimon.Table:
    table = create(folder, {"bucket": "1"}, primary_keys=["k"])
    write(table, 6)
    table.with_options({"compaction.small-file-ratio": "0"}).compact(full=True)
    write(table, 1)
    return table


def make_runs(folder: Path) -> paimon.Table:
    table = create(folder, {"bucket": "2"}, primary_keys=["k"])
    write(table, 7, rows=4)
    return table


def make_postponed_rows(folder: Path) -> paimon.Table:
    table = create(folder, {"bucket": "-2"}, primary_keys=["k"])
    write(table, 2)
    return table


def make_hidden_rows(folder: Path) -> paimon.Table:
    table = create(folder, {"bucket": "1", "deletion-vectors.enabled": "true"}, primary_keys=["k"])
    write(table, 2)
    return table


def make_vectors(folder: Path) -> paimon.Table:
    table = create(folder, {"deletion-vectors.enabled": "true"})
    write(table, 1, rows=40)
    table.delete(where="k < 20")
    return table


def make_manifests(folder: Path) -> paimon.Table:
    table = create(folder, {"manifest.merge-min-count": "4"})
    write(table, 4, rows=3, **{"manifest.merge-min-count": "100"})
    return table


def make_unknown_rows(folder: Path) -> paimon.Table:
    table = create(folder, TINY)
    write(table, 1, rows=900)
    return table


def make_unsorted_values(folder: Path) -> paimon.Table:
    table = create(folder, TINY)
    write(table, 4, rows=300)
    return table


def make_old_snapshots(folder: Path) -> paimon.Table:
    table = create(folder, FEW)
    write(table, 4)
    return table


def make_held_snapshots(folder: Path) -> paimon.Table:
    table = make_old_snapshots(folder)
    table.consumers.reset("slow", 2)
    return table


def make_changelogs(folder: Path) -> paimon.Table:
    options = {"bucket": "1", "changelog-producer": "input", **FEW, "changelog.num-retained.min": "2",
               "changelog.num-retained.max": "3"}  # fmt: skip
    table = create(folder, options, primary_keys=["k"])
    write(table, 5)
    table.with_options({**RETAINING, **FEW, "changelog.time-retained": "9 d"}).maintain.expire_snapshots(max_deletes=99)
    return table


def make_orphans(folder: Path) -> paimon.Table:
    table = create(folder, {})
    write(table, 1)
    orphan = Path(table.location) / "manifest" / "manifest-orphan"
    orphan.write_bytes(b"orphan")
    os.utime(orphan, (1, 1))
    return table


def make_skewed_buckets(folder: Path) -> paimon.Table:
    table = create(folder, {**TINY, "bucket": "4", "bucket-key": "day"})
    write(table, 1, rows=900, day="d0")
    return table


def make_skewed_partitions(folder: Path) -> paimon.Table:
    table = create(folder, {**TINY, "bucket": "1", "bucket-key": "k"}, partition_keys=["day"])
    write(table, 1, rows=5_000, day="d0")
    write(table, 1, day="d1")
    return table


MAKERS: dict[str, tuple[FindingKind, Callable[[Path], paimon.Table]]] = {
    "small files": (FindingKind.SMALL_FILES, make_small_files),
    "small files of levels": (FindingKind.SMALL_FILES, make_small_files_of_levels),
    "runs": (FindingKind.SORTED_RUNS, make_runs),
    "postponed rows": (FindingKind.UNREAD_ROWS, make_postponed_rows),
    "hidden rows": (FindingKind.UNREAD_ROWS, make_hidden_rows),
    "deletion vectors": (FindingKind.DELETION_VECTORS, make_vectors),
    "manifests": (FindingKind.MANIFESTS, make_manifests),
    "statistics": (FindingKind.STATISTICS, make_unknown_rows),
    "snapshots": (FindingKind.SNAPSHOTS, make_old_snapshots),
    "changelogs": (FindingKind.CHANGELOGS, make_changelogs),
    "orphans": (FindingKind.ORPHANS, make_orphans),
    "index": (FindingKind.FILE_INDEX, make_unsorted_values),
    "consumer": (FindingKind.CONSUMERS, make_held_snapshots),
    "skew of buckets": (FindingKind.BUCKET_SKEW, make_skewed_buckets),
    "skew of partitions": (FindingKind.PARTITION_SKEW, make_skewed_partitions),
}
WHERE = "v = 'v7'"


def find_cost(table: paimon.Table, kind: FindingKind) -> int:
    found = paimon.open_table(table.location).maintain.health(WHERE if kind is FindingKind.FILE_INDEX else None)
    return sum(finding.cost for finding in found.findings if finding.kind is kind)


def read_rows(table: paimon.Table) -> list[dict[str, Any]]:
    """Return all rows, also those that reads skip until a compaction."""
    shown = table.with_options({"deletion-vectors.merge-on-read": "true"}) if table.primary_keys else table
    return sorted(shown.scan().to_arrow().to_pylist(), key=lambda row: row["k"])


@pytest.mark.parametrize(("name", "door"), mark_products(MAKERS, ["fix", "statement", "command"],
    always=["small files", "runs", "deletion vectors", "statistics", "snapshots", "orphans"]))  # fmt: skip
def test_the_repair_of_a_finding_runs_and_repairs_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, door: str
) -> None:
    kind, make = MAKERS[name]
    table = make(tmp_path)
    rows = read_rows(table)
    where = WHERE if kind is FindingKind.FILE_INDEX else None
    finding = next(f for f in table.maintain.health(where).findings if f.kind is kind)
    assert finding.cost > 0 and finding.object_name and finding.repair is not None
    if door == "statement":
        paimon.connect(tmp_path).sql(finding.repair.to_statement(table.name))
    elif door == "command":
        for command in to_command(finding.repair, [table.location]).split(" && "):
            program, *words = shlex.split(command)
            assert (program, main([*words, "--output", "json"])) == ("paimon", 0)
    else:
        fixed = next(f for f in table.maintain.health(where, fix=True).findings if f.kind is kind)
        expected = (finding.cost, "not automatic") if not finding.repair.is_automatic else (0, fixed.outcome)
        assert (fixed.cost_after, fixed.outcome) == expected, fixed
        assert str(fixed.outcome).startswith(("not", "left")) != finding.repair.is_automatic
        assert not fixed.has_failed
    again = paimon.open_table(table.location)
    if finding.repair.is_automatic or (door != "fix" and kind is not FindingKind.BUCKET_SKEW):
        assert find_cost(table, kind) < finding.cost
    if finding.repair.is_automatic:
        assert find_cost(table, kind) == 0
    if kind is not FindingKind.UNREAD_ROWS:
        assert read_rows(again) == rows
    assert again.maintain.check(deep=True).is_whole


def test_the_repairs_of_a_branch_name_the_branch(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = make_runs(tmp_path)
    table.tags.create("one")
    table.branches.create("trial", "one")
    branch = paimon.connect(tmp_path).table("s.t$branch_trial")
    assert isinstance(branch, paimon.Table)
    (finding,) = branch.maintain.health().findings
    assert finding.repair is not None
    rows = to_health_rows(branch.maintain.health())
    assert rows[0]["repair"] == "CALL sys.compact(table => 's.t$branch_trial', compact_strategy => 'minor')"
    assert main(shlex.split(str(rows[0]["command"]))[1:]) == 0
    assert branch.maintain.health().findings == () and table.maintain.health().findings != ()


def make_ill_table(folder: Path) -> paimon.Table:
    """Make a table with findings of six kinds."""
    table = create(folder, {**TINY, **FEW, "manifest.merge-min-count": "4"}, partition_keys=["day"])
    write(table, 12, rows=2, **{"manifest.merge-min-count": "100"})
    orphan = Path(table.location) / "manifest" / "manifest-orphan"
    orphan.write_bytes(b"orphan")
    os.utime(orphan, (1, 1))
    return table


def test_one_call_makes_a_table_healthy_and_a_second_does_nothing(tmp_path: Path) -> None:
    table = make_ill_table(tmp_path)
    rows = read_rows(table)
    found = table.maintain.health(fix=True)
    kinds = ["small_files", "manifests", "statistics", "snapshots", "orphans"]
    assert [f.kind.value for f in found.findings] == kinds
    assert found.is_healthy, found
    assert found.findings[0].outcome is not None and "8 files" in found.findings[0].outcome
    again = table.maintain.health(fix=True)
    assert again.findings == () and again.is_healthy and again.snapshot_id == table.maintain.health().snapshot_id
    assert read_rows(table) == rows


def test_what_a_repair_causes_is_repaired_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Here merged manifests are a snapshot, which makes another one expire."""
    monkeypatch.setattr(assess_health, "DEAD_ENTRIES", 10)
    table = create(tmp_path, FEW, partition_keys=["day"])
    write(table, 12)
    found = table.maintain.health(fix=True)
    assert [f.kind.value for f in found.findings] == ["small_files", "snapshots", "manifests"]
    assert [text.split(" and ")[0] for text in str(found.findings[1].outcome).split("; ")] == [
        "11 snapshots", "1 snapshot",
    ]  # fmt: skip
    assert found.is_healthy and table.maintain.health().findings == ()


def test_an_examination_changes_nothing(tmp_path: Path) -> None:
    table = make_ill_table(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()}
    assert not table.maintain.health(WHERE).is_healthy
    assert {path: path.stat().st_mtime_ns for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_budget_of_bytes_leaves_what_exceeds_it(tmp_path: Path) -> None:
    table = make_ill_table(tmp_path)
    found = {f.kind.value: f for f in table.maintain.health(fix=True, max_bytes="4 kb").findings}
    small, statistics = found["small_files"], found["statistics"]
    assert small.outcome is not None and small.outcome.startswith("4 files") and "left: more than" in small.outcome
    assert small.cost_after is not None and 0 < small.cost_after < small.cost
    assert statistics.outcome is not None and statistics.outcome.startswith("left") and statistics.cost_after
    assert [found[name].cost_after for name in ("manifests", "snapshots", "orphans")] == [0, 0, 0]


def test_a_budget_of_time_begins_no_repair(tmp_path: Path) -> None:
    table = make_ill_table(tmp_path)
    found = table.maintain.health(fix=True, max_seconds=0)
    assert {f.outcome for f in found.findings} == {"left: no time remains"}
    assert len(table.snapshots()) == 12


def test_batches_of_a_compaction_are_commits_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "_BATCH_BYTES", 1)
    table = create(tmp_path, RETAINING, partition_keys=["day"])
    write(table, 12)
    found = table.maintain.health(fix=True)
    assert [s.commit_kind.value for s in table.snapshots()][12:] == ["COMPACT", "COMPACT"]
    assert found.is_healthy


def lose(*_: object, **__: object) -> None:
    raise paimon.CommitConflict("lost", files=("f",))


def test_a_repair_that_fails_does_not_stop_the_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repair, "compact", lose)
    found = {f.kind.value: f for f in make_ill_table(tmp_path).maintain.health(fix=True).findings}
    assert str(found["small_files"].outcome).startswith("failed: lost")
    assert [kind for kind, finding in found.items() if finding.has_failed] == ["small_files"]
    assert found["orphans"].cost_after == 0


@pytest.mark.parametrize("output", ["table", "json", "svg"])
def test_the_command_fails_after_it_printed_a_failed_repair(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], output: str
) -> None:
    monkeypatch.setattr(repair, "compact", lose)
    table = make_runs(tmp_path)
    assert main(["doctor", table.location, "--fix", "--output", output]) == 1
    printed = capsys.readouterr()
    assert printed.out and "1 repair failed" in printed.err and "'outcome'" in printed.err


def test_a_failure_of_a_repeated_repair_is_not_hidden_by_an_earlier_success(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(assess_health, "DEAD_ENTRIES", 10)
    calls = count(1)
    expire = repair.expire_snapshots
    monkeypatch.setattr(repair, "expire_snapshots", lambda *a, **k: expire(*a, **k) if next(calls) == 1 else lose())
    table = create(tmp_path, FEW, partition_keys=["day"])
    write(table, 12)
    expired = next(f for f in table.maintain.health(fix=True).findings if f.kind is FindingKind.SNAPSHOTS)
    assert "; failed" in str(expired.outcome) and expired.has_failed


@pytest.mark.parametrize(("limit", "why"), [(None, "left: run the repair again"), (5, "left: no time remains")])
def test_what_the_last_examination_finds_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: int | None, why: str
) -> None:
    monkeypatch.setattr(assess_health, "DEAD_ENTRIES", 10)
    monkeypatch.setattr(repair, "_ROUNDS", 1)
    table = create(tmp_path, FEW, partition_keys=["day"])
    write(table, 12)
    if limit is not None:
        clock = table.engine.clock

        def compact_slowly(*given: Any, **named: Any) -> Any:
            monkeypatch.setattr(type(clock), "now_millis", lambda _: 1 << 50)
            return compact(*given, **named)

        compact = repair.compact
        monkeypatch.setattr(repair, "compact", compact_slowly)
    found = table.maintain.health(fix=True, max_seconds=limit)
    assert [(f.kind.value, f.outcome) for f in found.findings][-1] == ("manifests", why)
    assert found.findings[-1].cost_after == found.findings[-1].cost and not found.is_healthy


def test_a_compaction_ends_while_writers_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = make_hidden_rows(tmp_path)
    compact, calls = repair.compact, count(1)

    def compact_while_written(*given: Any, **named: Any) -> Any:
        number = next(calls)
        assert number < 4, "each new file is new work"
        done = compact(*given, **named)
        write(table, 1)
        return done

    monkeypatch.setattr(repair, "compact", compact_while_written)
    (found, *_) = table.maintain.health(fix=True).findings
    assert found.kind is FindingKind.UNREAD_ROWS and found.cost_after == 2 and not found.has_failed


def test_repairs_use_the_newest_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table, analyze, used = make_unsorted_values(tmp_path), repair.analyze, list[str | None]()

    def analyze_with_recorded_option(context: TableContext, *given: Any) -> Any:
        used.append(context.options.get("file-index.bloom-filter.columns"))
        return analyze(context, *given)

    monkeypatch.setattr(repair, "analyze", analyze_with_recorded_option)
    table.maintain.health(WHERE, fix=True)
    assert used == ["v"]


@pytest.mark.parametrize("door", ["command", "fix"])
def test_columns_with_the_same_kind_of_index_are_declared_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], door: str
) -> None:
    table = make_unsorted_values(tmp_path).alter(paimon.SetOption("file-index.bloom-filter.columns", "k"))
    where, rewrite, calls = "v = 'v7' AND day = 'd0'", repair.rewrite_file_indexes, list[object]()
    monkeypatch.setattr(repair, "rewrite_file_indexes", lambda *given: calls.append(given) or rewrite(*given))
    found = [f for f in table.maintain.health(where).findings if f.kind is FindingKind.FILE_INDEX]
    assert [f.object_name for f in found] == ["column v", "column day"]
    if door == "fix":
        table.maintain.health(where, fix=True)
        assert len(calls) == 1
    else:
        for finding in found:
            assert finding.repair is not None
            for command in to_command(finding.repair, [table.location]).split(" && "):
                assert main(shlex.split(command)[1:]) == 0
    again = paimon.open_table(table.location)
    assert again.options["file-index.bloom-filter.columns"] == "k,v,day"
    assert FindingKind.FILE_INDEX not in {f.kind for f in again.maintain.health(where).findings}


def test_limits_without_repairs_and_unknown_columns_are_refused(tmp_path: Path) -> None:
    table = create(tmp_path, {})
    assert table.maintain.health(fix=True).is_healthy
    write(table, 1)
    for given in ({"max_seconds": 1}, {"max_bytes": "1 kb"}, {"fix": True, "max_seconds": -1}):
        with pytest.raises(paimon.InvalidRequest, match="max_"):
            table.maintain.health(**given)
    with pytest.raises(paimon.InvalidRequest, match="nothing"):
        table.maintain.health("nothing = 1")


def test_columns_are_found_by_the_conditions_that_an_observer_counted(tmp_path: Path) -> None:
    observer = CountingObserver()
    table = make_unsorted_values(tmp_path)
    watched = table.with_engine(evolve(table.engine, observer=observer))
    size = table.maintain.health().size_bytes
    for _ in range(2):
        assert watched.scan(where="v = 'v7' AND day >= 'd0'").to_arrow().num_rows == 120
    watched.scan(where="k = 7").to_arrow()  # statistics leave one file
    assert observer.metrics["scan.equality.s.t.v"] == 2 * size == observer.metrics["scan.range.s.t.day"]
    assert not any(metric.endswith(".k") for metric in observer.metrics)
    found = [f for f in table.maintain.health(observed=observer.metrics).findings if f.kind is FindingKind.FILE_INDEX]
    assert [(f.object_name, f.cost) for f in found] == [("column day", 2 * size), ("column v", 2 * size)]
    table.maintain.health(fix=True, observed=observer.metrics)
    again = paimon.open_table(table.location).maintain.health(observed=observer.metrics)
    assert FindingKind.FILE_INDEX not in {f.kind for f in again.findings}


def test_an_index_is_not_proposed_where_reads_cannot_use_it(tmp_path: Path) -> None:
    table = create(tmp_path, {**TINY, "bucket": "1"}, primary_keys=["k"])
    write(table, 1, rows=900)
    assert table.maintain.health(WHERE).findings != ()
    assert {f.kind for f in table.maintain.health(WHERE).findings} == {FindingKind.STATISTICS}


@pytest.fixture(scope="module")
def repaired(tmp_path_factory: pytest.TempPathFactory) -> TableHealth:
    table = make_runs(tmp_path_factory.mktemp("repaired"))
    return table.maintain.health(fix=True)


def test_pictures_show_levels_before_and_after(repaired: TableHealth) -> None:
    columns = to_picture_columns(repaired)
    assert [c.name for c in columns] == ["bucket", "level", "files", "after repairs"]
    assert columns[0].cells == ("bucket-0", "", "bucket-1", "")
    assert columns[1].cells == ("0", "5", "0", "5")
    assert [bool(cell) for cell in columns[2].cells] == [True, False, True, False]
    assert [bool(cell) for cell in columns[3].cells] == [False, True, False, True]
    root = ElementTree.fromstring(draw_svg(repaired))
    assert len([part for part in root if part.tag.endswith("rect")]) == 5
    assert "sorted_runs" in str(repaired) and "sorted_runs" in repaired._repr_html_()


def test_the_command_prints_findings_a_picture_and_svg(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    make_runs(tmp_path)
    place = ["s.t", "--warehouse", str(tmp_path)]
    assert main(["doctor", *place]) == 0
    printed = capsys.readouterr().out
    assert f"paimon compact s.t --warehouse {tmp_path}" in printed and "█" in printed and "outcome" not in printed
    assert main(["doctor", *place, "--output", "svg", "--fix"]) == 0
    assert capsys.readouterr().out.startswith("<svg")
    assert main(["doctor", *place]) == 0
    assert capsys.readouterr().out.strip() == "findings of s.t: none"


def test_an_index_of_a_map_key_is_proposed_and_built(tmp_path: Path) -> None:
    options = {"target-file-size": "1 kb", "write-only": "true"}
    catalog = paimon.connect(tmp_path)
    catalog.create_database("s")
    table = catalog.create_table("s.t", "id INT, tags MAP<STRING, STRING>", options=options)
    for first in range(3):
        table.write([{"id": i, "tags": {"color": f"c{first} {i}"}} for i in range(300)])
    where = "tags['color'] = 'c1 7' AND tags['a,b'] IS NULL"
    (found,) = (f for f in table.maintain.health(where).findings if f.kind is FindingKind.FILE_INDEX)
    assert found.object_name == "column tags[color]"
    table.maintain.health(where, fix=True)
    again = paimon.open_table(table.location)
    assert again.options["file-index.bloom-filter.columns"] == "tags[color]"
    assert FindingKind.FILE_INDEX not in {f.kind for f in again.maintain.health(where).findings}
    assert again.scan(where=where, columns=["id"]).to_arrow().to_pylist() == [{"id": 7}]
