"""Maintenance after a commit, and the maintenance methods as users call them."""

from __future__ import annotations

import os
import warnings
from datetime import timedelta
from pathlib import Path

import pyarrow as pa
import pytest
from attrs import evolve, field, frozen

import paimon
from paimon.domain.errors import AlreadyExists, CorruptTable, InvalidRequest, NotFound
from paimon.domain.snapshot.snapshot import Tag

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000
ONE = {"snapshot__num_retained__min": "1", "snapshot__num_retained__max": "1"}
START = 1_700_006_400_000 // DAY * DAY


@frozen(eq=False)
class SetClock:
    """A clock that is set by hand; the machine's zone is UTC."""

    now: list[int] = field(factory=lambda: [START])

    def now_millis(self) -> int:
        return self.now[0]

    def local_offset_millis(self, at_millis: int) -> int:
        return 0

    def sleep_millis(self, millis: float) -> None:
        self.now[0] += int(millis)


@frozen(eq=False)
class Shop:
    """Tables whose clock the test sets."""

    root: Path
    clock: SetClock = field(factory=SetClock)

    def table(self, columns: str = "id INT NOT NULL, v STRING", keys: tuple[str, ...] = ("id",),
              partitions: tuple[str, ...] = (), **options: str) -> paimon.Table:  # fmt: skip
        texts = {key.replace("__", ".").replace("_", "-"): value for key, value in options.items()}
        catalog = paimon.connect(self.root)
        catalog.create_database("db", exist_ok=True)
        options_ = {"bucket": "1", "num-sorted-run.compaction-trigger": "99", **texts}
        made = catalog.create_table(
            f"db.t{len(catalog.tables('db'))}", columns, primary_keys=keys, partition_keys=partitions, options=options_
        )
        return made.with_engine(evolve(made.engine, clock=self.clock))

    def wait(self, millis: int) -> None:
        self.clock.now[0] += millis


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def ids(table: paimon.Table) -> list[int]:
    return [s.id for s in table.snapshots()]


def write(table: paimon.Table, number: int = 1) -> None:
    for _ in range(number):
        table.write(pa.table({"id": pa.array([1], pa.int32()), "v": ["x"]}))


def test_snapshots_expire_with_the_commits_that_replace_them(shop: Shop) -> None:
    table = shop.table(snapshot__num_retained__min="2", snapshot__time_retained="10 min")
    write(table, 5)
    assert ids(table) == [1, 2, 3, 4, 5]
    shop.wait(11 * MINUTE)
    write(table)
    assert ids(table) == [5, 6]  # 5 was replaced just now
    shop.wait(11 * MINUTE)
    write(table)
    assert ids(table) == [6, 7]
    assert table.maintain.check().faults == ()


def test_the_limit_spreads_expiry_over_commits(shop: Shop) -> None:
    table = shop.table(snapshot__num_retained__max="3", snapshot__num_retained__min="1", snapshot__expire__limit="2")
    write(table.with_options({"write-only": True}), 9)
    assert ids(table) == list(range(1, 10))
    write(table)
    assert ids(table) == list(range(3, 11))
    write(table)
    assert ids(table) == list(range(5, 12))


def test_only_the_compactor_maintains_a_write_only_table(shop: Shop) -> None:
    table = shop.table(write_only="true", snapshot__num_retained__max="2", snapshot__num_retained__min="1")
    write(table, 4)
    assert ids(table) == [1, 2, 3, 4]
    table.compact(full=True)
    assert ids(table) == [4, 5]


def test_daily_tags_follow_the_clock(shop: Shop) -> None:
    table = shop.table(
        tag__automatic_creation="process-time", tag__creation_delay="1 h", tag__num_retained_max="2",
        sink__process_time_zone="UTC", tag__create_success_file="true",
    )  # fmt: skip
    write(table)
    assert list(table.tags) == ["2023-11-14"]
    shop.wait(DAY)
    write(table)
    assert list(table.tags) == ["2023-11-14"]  # the delay is not over
    shop.wait(HOUR)
    write(table)
    assert [(name, tag.snapshot.id) for name, tag in table.tags.items()] == [("2023-11-14", 1), ("2023-11-15", 3)]
    shop.wait(3 * DAY)
    write(table)
    assert list(table.tags) == ["2023-11-15", "2023-11-18"]
    marked = sorted(p.name for p in (Path(table.location) / "tag" / "tag-success-file").iterdir())
    assert marked == ["2023-11-15_SUCCESS", "2023-11-18_SUCCESS"]
    with pytest.raises(InvalidRequest, match="automatic tag"):
        table.tags.create("2023-11-01")
    table.tags.create("by-hand")


def test_completion_creates_tags_of_missed_periods(shop: Shop) -> None:
    table = shop.table(
        tag__automatic_creation="process-time", tag__automatic_completion="true", tag__creation_period="hourly",
        tag__period_formatter="without_dashes_and_spaces", sink__process_time_zone="UTC",
    )  # fmt: skip
    write(table)
    shop.wait(3 * HOUR)
    write(table, 2)
    assert list(table.tags) == ["2023111423", "2023111500", "2023111501"]


def test_tags_of_batches(shop: Shop) -> None:
    table = shop.table(tag__automatic_creation="batch", sink__process_time_zone="UTC", tag__num_retained_max="2")
    write(table, 2)
    assert {n: t.snapshot.id for n, t in table.tags.items()} == {"batch-write-2023-11-15": 2}
    for _ in range(2):
        shop.wait(DAY)
        write(table)
    assert list(table.tags) == ["batch-write-2023-11-16", "batch-write-2023-11-17"]
    named = shop.table(tag__automatic_creation="batch", tag__batch__customized_name="nightly")
    write(named, 3)
    assert {n: t.snapshot.id for n, t in named.tags.items()} == {"nightly": 3}


def test_tags_expire_after_their_retention_time(shop: Shop) -> None:
    table = shop.table(tag__default_time_retained="2 d", **ONE)
    write(table)
    table.tags.create("default")
    table.tags.create("long", time_retained=timedelta(days=9))
    assert table.tags["default"].retained_seconds == 2 * 86_400
    shop.wait(2 * DAY + 1)
    write(table)
    assert list(table.tags) == ["long"]
    assert table.scan(tag="long").count() == 1
    shop.wait(8 * DAY)
    write(table)
    assert list(table.tags) == [] and len(ids(table)) == 1
    assert table.maintain.remove_orphans(timedelta(0), dry_run=True).num_rows == 0


def test_partitions_expire_once_an_interval(shop: Shop) -> None:
    table = shop.table(
        "id INT NOT NULL, day DATE NOT NULL", ("id", "day"), ("day",), partition__expiration_time="3 d",
        partition__expiration_check_interval="1 h",
    )  # fmt: skip
    for day in ("2023-11-11", "2023-11-12", "2023-11-14"):
        table.write([{"id": 1, "day": day}])
    assert table.scan().count() == 3
    shop.wait(61 * MINUTE)
    table.write([{"id": 1, "day": "2023-11-15"}])
    assert [str(d) for d in table.scan().to_arrow()["day"].to_pylist()] == ["2023-11-14", "2023-11-15"]
    assert table.drop_partitions({"day": "2023-11-14"}, {"day": "2001-01-01"}) == (6,)
    assert table.drop_partitions({"day": "2001-01-01"}) == ()
    with pytest.raises(InvalidRequest):
        table.drop_partitions({})


def test_partitions_by_their_newest_file(shop: Shop) -> None:
    table = shop.table(
        "id INT NOT NULL, p STRING NOT NULL", ("id", "p"), ("p",), partition__expiration_strategy="update-time"
    )
    table.write([{"id": 1, "p": "old"}, {"id": 1, "p": "new"}])
    shop.wait(2 * DAY)
    table.write([{"id": 2, "p": "new"}])
    assert table.maintain.expire_partitions("1 d") == [{"p": "old"}]
    assert table.maintain.expire_partitions("1 d") == []
    with pytest.raises(InvalidRequest, match="does not define when partitions expire"):
        table.maintain.expire_partitions()
    with pytest.raises(InvalidRequest, match="no partitions"):
        shop.table().maintain.expire_partitions("1 d")


def test_consumers_without_progress_expire(shop: Shop) -> None:
    table = shop.table(consumer__expiration_time="1 d", **ONE)
    write(table)
    table.consumers.reset("slow", 1)
    shop.wait(2 * DAY)  # the clock of this machine does not count
    write(table)
    assert ids(table) == [1, 2] and dict(table.consumers) == {"slow": 1}
    assert table.consumers.expire(timedelta(days=1)) == []
    make_older(Path(table.location, "consumer", "consumer-slow"), 2 * DAY)
    write(table)
    assert ids(table) == [3] and dict(table.consumers) == {}


def test_patterns_of_consumers_match_whole_names_in_linear_time(shop: Shop) -> None:
    table = shop.table(**ONE)
    write(table)
    for name in ("a" * 200, "job-1", "job-2", "other"):
        table.consumers.reset(name, 1)
    assert table.consumers.clear("(a+)+b") == []  # backtracking would take 2^200 steps
    assert table.consumers.clear("job", ".*2") == []
    assert table.consumers.clear("job.*|(a+)+", ".*2") == ["a" * 200, "job-1"]
    for pattern in ("(", "a)|(b", r"(?=x)x", r"(a)\1"):
        with pytest.raises(InvalidRequest, match="is not a regular expression"):
            table.consumers.clear(pattern)
    assert dict(table.consumers) == {"job-2": 1, "other": 1}


def test_failing_maintenance_never_fails_the_commit(shop: Shop) -> None:
    table = shop.table(**ONE)
    write(table)
    table.tags.create("expected_ids")
    (Path(table.location) / "tag" / "tag-kept").write_text("{")
    with pytest.warns(RuntimeWarning, match="the rows are committed, but maintenance afterwards failed"):
        write(table)
    assert ids(table) == [1, 2] and table.scan().count() == 1
    with pytest.raises(CorruptTable, match="tag-kept"):
        table.maintain.expire_snapshots(retain_max=1)
    with pytest.raises(CorruptTable, match="tag-kept"):
        table.maintain.remove_orphans(dry_run=True)
    (Path(table.location) / "tag" / "tag-kept").unlink()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        write(table)
    assert ids(table) == [3]


def test_tags_are_a_mapping_with_verbs(shop: Shop) -> None:
    table = shop.table()
    with pytest.raises(NotFound):
        table.tags.create("early")
    write(table, 3)
    made = table.tags.create("one", 1)
    assert isinstance(made, Tag) and table.tags["one"].snapshot.id == 1 and "one" in table.tags
    assert table.tags.create("one", 3, exist_ok=True).snapshot.id == 1
    for name in ("", "  ", "a/b", "..", "success-file"):
        with pytest.raises(InvalidRequest):
            table.tags.create(name)
    with pytest.raises(AlreadyExists):
        table.tags.create("one")
    table.tags.create("two")
    with pytest.raises(AlreadyExists):
        table.tags.rename("one", "two")
    with pytest.raises(NotFound, match="Did you mean 'two'"):
        table.tags.replace("tow")
    assert table.tags.get("none") is None and len(table.tags) == 2 and "one, two" in repr(table.tags)


def test_rollback_names_one_state(shop: Shop) -> None:
    table = shop.table()
    for _ in range(3):
        write(table)
        shop.wait(HOUR)
    for way in ({}, {"snapshot": 1, "tag": "x"}):
        with pytest.raises(InvalidRequest, match="exactly one"):
            table.maintain.rollback_to(**way)  # type: ignore[arg-type]
    with pytest.raises(NotFound):
        table.maintain.rollback_to(timestamp=START - 1)
    with pytest.raises(NotFound):
        table.maintain.rollback_to(9)
    assert ids(table) == [1, 2, 3]
    assert table.maintain.rollback_to(timestamp=START + HOUR).snapshot_id == 2
    write(table)
    assert ids(table) == [1, 2, 3] and table.maintain.check().faults == ()


def make_older(path: Path, millis: int) -> None:
    modified = path.stat().st_mtime - millis / 1000
    os.utime(path, (modified, modified))


def test_young_files_are_not_removed_unless_requested(shop: Shop) -> None:
    table = shop.table()
    write(table)
    orphan = Path(table.location) / "bucket-0" / "data-orphan.parquet"
    orphan.write_bytes(b"x")
    assert table.maintain.remove_orphans().num_rows == 0
    with pytest.raises(InvalidRequest, match="younger than a day"):
        table.maintain.remove_orphans(timedelta(hours=23), dry_run=False)
    with pytest.raises(InvalidRequest):
        an_hour_later = int(orphan.stat().st_mtime * 1000) + HOUR
        table.maintain.remove_orphans(an_hour_later, allow_young=True, dry_run=False)
    make_older(orphan, 2 * DAY)
    assert table.maintain.remove_orphans()["path"].to_pylist() == [str(orphan)] and orphan.exists()
    found = table.maintain.remove_orphans(dry_run=False)
    assert found["path"].to_pylist() == [str(orphan)] and found.schema.names == ["path", "size", "modified"]
    assert not orphan.exists() and table.scan().count() == 1


def test_empty_directories_are_removed_on_request(shop: Shop) -> None:
    table = shop.table(
        "id INT NOT NULL, p STRING NOT NULL", ("id", "p"), ("p",), snapshot__clean_empty_directories="true"
    )
    table.write([{"id": 1, "p": "a"}, {"id": 1, "p": "b"}])
    table.drop_partitions({"p": "a"})
    table.maintain.expire_snapshots(retain_max=1)
    assert not (Path(table.location) / "p=a").exists()
    assert (Path(table.location) / "p=b" / "bucket-0").exists() and table.scan().count() == 1


@pytest.mark.parametrize(("retained", "expected_ids"), [(None, []), ("30 min", []), ("2 d", [1, 2])])
def test_changelogs_expire_by_their_own_age(shop: Shop, retained: str | None, expected_ids: list[int]) -> None:
    options = {} if retained is None else {"changelog__time_retained": retained}
    table = shop.table(changelog_producer="input", snapshot__num_retained__min="1", **options)
    write(table, 3)
    shop.wait(2 * HOUR)
    write(table)

    def list_decoupled_ids() -> list[int]:
        names = [path.name for path in Path(table.location, "changelog").glob("changelog-*")]
        return sorted(int(name.removeprefix("changelog-")) for name in names)

    assert ids(table) == [3, 4] and list_decoupled_ids() == expected_ids
    shop.wait(3 * DAY)
    write(table)
    assert ids(table) == [4, 5] and list_decoupled_ids() == ([3] if expected_ids else [])


@pytest.mark.parametrize("delete_all", [False, True])
def test_a_dry_run_finds_the_changelogs_that_would_be_deleted(shop: Shop, delete_all: bool) -> None:
    table = shop.table(changelog_producer="input", changelog__time_retained="9 d", snapshot__num_retained__min="1")
    write(table, 4)
    shop.wait(2 * HOUR)
    write(table)
    due = table.maintain.expire_changelogs(retain_min=1, retain_max=3, delete_all=delete_all, dry_run=True)
    assert (due.first, due.snapshots, due.files) == (1, 3 if delete_all else 2, 0)
    assert len(list(Path(table.location, "changelog").glob("changelog-*"))) == 3
    done = table.maintain.expire_changelogs(retain_min=1, retain_max=3, delete_all=delete_all)
    assert (done.first, done.until, done.snapshots) == (due.first, due.until, due.snapshots) and done.files > 0
    assert due.retained_by == done.retained_by and [reason.kind for reason in due.retained_by] == (
        [] if delete_all else ["rule"]
    )


@pytest.mark.parametrize("producer", ["input", "none"])
def test_what_retains_changelogs_is_named(shop: Shop, producer: str) -> None:
    options = {
        "changelog__time_retained": "9 d",
        "snapshot__num_retained__min": "1",
        "consumer__changelog_only": "true",
    }
    table = shop.table(changelog_producer=producer, **options)
    write(table)
    table.tags.create("old")
    write(table, 3)
    table.consumers.reset("slow", 2)
    shop.wait(2 * HOUR)
    write(table)

    def name_reasons(**limits: int) -> list[str]:
        found = table.maintain.expire_changelogs(**limits, dry_run=True)
        return [f"{found.snapshots}: {str(reason).partition(' since ')[0]}" for reason in found.retained_by]

    assert name_reasons() == ["0: option 'changelog.time-retained' at snapshot 1"]
    tag = ["1: tag 'old' at snapshot 1"] if producer == "none" else []
    rule = "1: rule 'the newest changelog stays' at snapshot 3"
    assert name_reasons(retain_max=3, retain_min=1) == [*tag, "1: consumer 'slow' at snapshot 2", rule]


@pytest.mark.parametrize(("value", "left"), [("true", []), ("false", ["brief"])])
def test_tags_expire_after_commits_unless_an_option_forbids_it(shop: Shop, value: str, left: list[str]) -> None:
    table = shop.table(tag__time_expire_enabled=value)
    write(table)
    table.tags.create("brief", time_retained=timedelta(hours=1))
    shop.wait(2 * HOUR)
    write(table)
    assert list(table.tags) == left


@pytest.mark.parametrize(("value", "expected"), [("false", []), ("true", ["t_SUCCESS"])])
def test_an_option_marks_tags_by_a_file(shop: Shop, value: str, expected: list[str]) -> None:
    table = shop.table(tag__create_success_file=value)
    write(table)
    table.tags.create("t")
    directory = Path(table.location, "tag", "tag-success-file")
    assert [p.name for p in directory.glob("*")] == expected
    table.tags.delete("t")
    assert list(directory.glob("*")) == []


def create_partitioned_table(shop: Shop, **options: str) -> paimon.Table:
    table = shop.table("id INT NOT NULL, hour INT NOT NULL, day STRING NOT NULL", ("id", "hour", "day"),
                       ("hour", "day"), partition__expiration_time="3 d", **options)  # fmt: skip
    table.write([{"id": 1, "hour": hour, "day": f"2023-11-0{hour}"} for hour in (1, 2, 3)])
    return table


@pytest.mark.parametrize(("pattern", "expired"), [(None, []), ("$day", [1, 2, 3]), ("$day $hour", [])])
def test_a_pattern_finds_the_time_in_partition_values(shop: Shop, pattern: str | None, expired: list[int]) -> None:
    options = {} if pattern is None else {"partition__timestamp_pattern": pattern}
    found = create_partitioned_table(shop, **options).maintain.expire_partitions()
    assert [partition["hour"] for partition in found] == [str(hour) for hour in expired]


@pytest.mark.parametrize(("number", "expired"), [("100", 3), ("2", 2)])
def test_an_option_limits_the_partitions_that_expire_at_once(shop: Shop, number: str, expired: int) -> None:
    table = create_partitioned_table(shop, partition__timestamp_pattern="$day", partition__expiration_max_num=number)
    assert len(table.maintain.expire_partitions()) == expired
    assert table.scan().count() == 3 - expired


@pytest.mark.parametrize(("size", "commits"), [("3", 1), ("2", 2), ("1", 3)])
def test_partitions_expire_in_commits_of_a_size(shop: Shop, size: str, commits: int) -> None:
    table = create_partitioned_table(shop, partition__timestamp_pattern="$day", partition__expiration_batch_size=size)
    assert len(table.maintain.expire_partitions()) == 3
    assert [s.commit_kind.value for s in table.snapshots()] == ["APPEND"] + commits * ["OVERWRITE"]
    assert table.scan().count() == 0


def test_orphans_are_looked_for_in_external_paths(shop: Shop, tmp_path: Path) -> None:
    table = shop.table()
    write(table)
    outside = tmp_path / "outside"
    orphan = outside / "bucket-0" / "data-orphan.parquet"
    orphan.parent.mkdir(parents=True)
    orphan.write_bytes(b"x")
    make_older(orphan, 2 * DAY)

    def orphans(options: dict[str, str], *allowed: str) -> list[str]:
        opened = paimon.open_table(table.location, options, allowed_roots=allowed)
        found = opened.with_engine(evolve(opened.engine, clock=shop.clock)).maintain.remove_orphans()
        return list(found["path"].to_pylist())

    external = {"data-file.external-paths": str(outside)}
    assert orphans({}, str(outside)) == []
    assert orphans(external) == [], "the caller allows no directory outside the table"
    assert orphans(external, str(outside)) == [str(orphan)]
