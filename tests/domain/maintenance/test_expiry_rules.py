"""The rules of expiry: what may expire, tag periods, partition times, and which references need a file."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.maintenance.partition_expiry import (
    UPDATES,
    PartitionAge,
    PartitionRetention,
    compile_formatter,
    expired_partitions,
    partition_time,
)
from paimon.domain.maintenance.referenced_files_columnar import Mentions
from paimon.domain.maintenance.referenced_files_columnar import ever_live as ever_live_columns
from paimon.domain.maintenance.referenced_files_reference import ever_live
from paimon.domain.maintenance.snapshot_expiry import (
    ExpiryRange,
    Retention,
    RetentionReason,
    find_expirable,
    find_first_retained,
    find_removed_files,
    find_retention_reasons,
    has_decoupled_changelogs,
)
from paimon.domain.maintenance.tag_expiry import AutoTags, expired_tags, format_local_time, parse_local_time
from paimon.domain.manifest.entries import DataFileMeta, FileKind, FileSource, ManifestEntry
from paimon.domain.options.table_options import TableOptions
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot, Tag
from paimon.domain.snapshot.tag_periods import TagPeriods

HOUR = 3_600_000
DAY = 24 * HOUR


def local(text: str) -> int:
    return parse_local_time(text)


# Snapshots


@given(st.integers(1, 20), st.integers(1, 30), st.integers(1, 20), st.integers(0, 40), st.integers(1, 60), st.data())
def test_numbers_ages_and_consumers_hold(
    least: int, more: int, earliest: int, count: int, limit: int, data: st.DataObject
) -> None:
    """Compare with a different formulation of the rule: for each id, what retains it?"""
    latest = earliest + count
    consumer_position = data.draw(st.integers(1, 70))
    times = sorted(data.draw(st.lists(st.integers(0, 100), min_size=count + 1, max_size=count + 1)))
    ages = [(i, times[i + 1 - earliest]) for i in range(earliest, latest)]
    retention = Retention(least, least + more, 50, limit)
    reach = find_expirable(retention, earliest, latest, consumer_position)
    until = find_first_retained(reach, retention, [a for a in ages if a[0] >= reach.aged], now_millis=100)

    def may_go(i: int) -> bool:
        numbered = latest - i >= least and i < consumer_position and i - earliest < limit
        aged = dict(ages).get(i, 100) < 50 or latest - i >= least + more
        return numbered and aged

    gone = [i for i in range(earliest, latest + 1) if all(may_go(j) for j in range(earliest, i + 1))]
    assert until == earliest + len(gone)
    assert until <= max(earliest, latest)


@pytest.mark.parametrize(("since", "first_retained"), [(49, 2), (50, 1), (51, 1)])
def test_a_snapshot_expires_above_the_retention_time_only(since: int, first_retained: int) -> None:
    assert find_first_retained(ExpiryRange(1, 1, 2), Retention(1, 9, 50, 9), [(1, since)], 100) == first_retained


def test_a_limit_is_shorter_than_another_if_one_of_its_parts_is() -> None:
    retention = Retention(2, 6, DAY, 4)
    Retention(2, 2, DAY, 4).check()
    assert not retention.is_shorter_than(retention)
    for shorter in (Retention(1, 6, DAY, 4), Retention(2, 5, DAY, 4), Retention(3, 7, HOUR, 4)):
        assert shorter.is_shorter_than(retention)


def test_inconsistent_retention_limits_are_refused() -> None:
    for retention in (Retention(0, 5, 1, 1), Retention(3, 2, 1, 1)):
        with pytest.raises(InvalidRequest):
            find_expirable(retention, 1, 9)
    assert find_first_retained(ExpiryRange(4, 4, 2), Retention(1, 9, 1, 1), [], 0) == 4


@pytest.mark.parametrize(
    ("retention", "first_retained", "option"),
    [
        (Retention(2, 6, DAY, 50), 9, "snapshot.num-retained.min"),
        (Retention(2, 6, DAY, 4), 5, "snapshot.expire.limit"),
        (Retention(2, 6, DAY, 50), 7, "snapshot.time-retained"),
        (Retention(2, 6, DAY, 50), 8, "snapshot.time-retained"),
        (Retention(2, 6, DAY, 50, "changelog"), 7, "changelog.time-retained"),
        (Retention(2, 6, DAY, 50, "changelog"), 9, "changelog.num-retained.min"),
    ],
)
def test_what_retains_snapshots_is_named(retention: Retention, first_retained: int, option: str) -> None:
    slow = RetentionReason("consumer", "slow", 4, HOUR)
    references = [RetentionReason("consumer", "fast", 9), slow, RetentionReason("tag", "old", 1)]
    found = find_retention_reasons(retention, 1, 10, first_retained, DAY, references)
    assert found == [references[2], slow, RetentionReason("option", option, first_retained, DAY)]
    assert str(found[1]) == "consumer 'slow' at snapshot 4 since 1970-01-01 01:00:00.000Z"
    assert str(found[0]) == "tag 'old' at snapshot 1"


def test_changelogs_are_decoupled_if_their_retention_is_longer() -> None:
    assert not has_decoupled_changelogs(TableOptions.of({}))
    assert not has_decoupled_changelogs(
        TableOptions.of({"changelog.num-retained.max": "5", "snapshot.num-retained.max": "9"})
    )
    for key, value in (("num-retained.min", "11"), ("time-retained", "2 h")):
        assert has_decoupled_changelogs(TableOptions.of({f"changelog.{key}": value}))


# Files


def entry(kind: FileKind, name: str, level: int = 0, extras: tuple[str, ...] = (), **more: object) -> ManifestEntry:
    file = DataFileMeta(name, 1, 1, level=level, extra_files=extras, **more)  # type: ignore[arg-type]
    return ManifestEntry(kind, b"", 0, 1, file)


def names_of(files: dict[tuple[bytes, int, str | None, str], None]) -> list[str]:
    return sorted(key[3] for key in files)


def test_a_file_that_moved_to_another_level_is_not_dropped() -> None:
    up = [entry(FileKind.DELETE, "a", 0), entry(FileKind.ADD, "a", 5)]
    assert names_of(find_removed_files([up])) == []
    assert names_of(find_removed_files([up[::-1]])) == []
    assert names_of(find_removed_files([up, [entry(FileKind.DELETE, "a", 5)]])) == ["a"]
    assert names_of(find_removed_files([[entry(FileKind.DELETE, "a")], [entry(FileKind.ADD, "a")]])) == []


def test_extra_files_are_dropped_with_their_file_or_when_replaced() -> None:
    old = entry(FileKind.DELETE, "a", extras=("a.index",))
    assert names_of(find_removed_files([[old]])) == ["a", "a.index"]
    assert names_of(find_removed_files([[old, entry(FileKind.ADD, "a", extras=("a-1.index",))]])) == ["a.index"]


def test_files_of_a_decoupled_changelog_are_not_deleted() -> None:
    delta = [
        entry(FileKind.DELETE, "w", file_source=FileSource.APPEND),
        entry(FileKind.DELETE, "c", file_source=FileSource.COMPACT),
        entry(FileKind.DELETE, "u"),
    ]
    assert names_of(find_removed_files([delta], keep_appended=True)) == ["c"]


MANIFESTS = st.dictionaries(
    st.sampled_from("abcdef"), st.lists(st.tuples(st.sampled_from([1, -1]), st.sampled_from("xyzuv")), max_size=6)
)


@given(MANIFESTS, st.lists(st.frozensets(st.sampled_from("abcdefg")), max_size=8))
def test_ever_live_files_equal_the_reference(
    manifests: dict[str, list[tuple[int, str]]], states: list[frozenset[str]]
) -> None:
    asked = "xyzuw"
    declared = {
        name: Mentions(
            np.array([asked.index(f) for _, f in entries if f in asked], dtype=np.int64),
            np.array([sign for sign, f in entries if f in asked], dtype=np.int64),
        )
        for name, entries in manifests.items()
    }
    found = ever_live_columns(states, declared, len(asked))
    assert {f for f, live in zip(asked, found, strict=True) if live} == ever_live(states, manifests) & set(asked)


# Tags


@pytest.mark.parametrize(
    ("options", "time", "name"),
    [
        ({}, "2024-03-05T00:00:00", "2024-03-05"),
        ({"tag.period-formatter": "without_dashes"}, "2024-03-05T00:00:00", "20240305"),
        ({"tag.creation-period": "hourly"}, "2024-03-05T07:00:00", "2024-03-05 07"),
        (
            {"tag.creation-period": "hourly", "tag.period-formatter": "without_dashes_and_spaces"},
            "2024-03-05T07:00:00",
            "2024030507",
        ),
        ({"tag.creation-period": "two-hours"}, "2024-03-05T06:00:00", "2024-03-05 06"),
        ({"tag.creation-period-duration": "5 min"}, "2024-03-05T06:05:00", "202403050605"),
    ],
)
def test_periods_and_their_names(options: dict[str, str], time: str, name: str) -> None:
    periods = TagPeriods.of(TableOptions.of(options))
    assert periods.format_name(local(time)) == name
    assert periods.parse_name(name) == local(time)
    assert periods.parse_name("release-1") is None
    assert periods.last_ended_start(local(time) + 1) == local(time) - periods.millis
    assert periods.last_ended_start(local(time)) == local(time) - periods.millis


def test_a_tag_is_due_once_its_period_and_the_delay_are_over() -> None:
    rules = AutoTags(TagPeriods.of(TableOptions.of({})), delay_millis=HOUR)
    last = local("2024-03-04T00:00:00")
    assert not rules.is_due(local("2024-03-06T00:59:59"), last)
    assert rules.is_due(local("2024-03-06T01:00:00"), last)
    assert rules.periods.format_name(rules.due_period(local("2024-03-09T05:00:00"), last)) == "2024-03-08"
    completing = AutoTags(rules.periods, HOUR, completes=True)
    assert completing.periods.format_name(completing.due_period(local("2024-03-09T05:00:00"), last)) == "2024-03-05"
    with pytest.raises(InvalidRequest):
        AutoTags.of(TableOptions.of({"tag.creation-delay": "1 d"}))


def test_tags_expire_by_their_time_to_live_or_their_age() -> None:
    snapshot = Snapshot(1, 0, "b", "d", "u", 1, CommitKind.APPEND, 0)
    tags = [
        Tag("ttl", snapshot, format_local_time(10 * HOUR), 3600.0),
        Tag("plain", snapshot),
        Tag("unknown", snapshot),
    ]
    made = {"plain": 5 * HOUR}
    assert expired_tags(tags, made, 11 * HOUR) == []
    assert expired_tags(tags, made, 11 * HOUR + 1) == ["ttl"]
    assert expired_tags(tags, made, 10 * HOUR, older_than=6 * HOUR) == ["plain"]
    assert expired_tags(tags, made, 10 * HOUR, older_than=10 * HOUR + 1) == ["ttl", "plain"]


@given(st.integers(0, 4_000_000_000_000))
def test_local_times_survive_their_text(millis: int) -> None:
    assert parse_local_time(format_local_time(millis)) == millis


# Partitions


@pytest.mark.parametrize(
    ("values", "pattern", "formatter", "time"),
    [
        ({"dt": "2024-02-05"}, None, None, "2024-02-05T00:00:00"),
        ({"dt": "2024-2-5 7:08:09.5"}, None, None, "2024-02-05T07:08:09.500"),
        ({"dt": "2024-13-01"}, None, None, "2025-01-01T00:00:00"),
        ({"dt": "20240205"}, None, "yyyyMMdd", "2024-02-05T00:00:00"),
        ({"dt": "2024-02-31"}, None, "yyyy-MM-dd", "2024-02-29T00:00:00"),
        ({"dt": "20240205", "h": "07"}, "$dt $h", "yyyyMMdd HH", "2024-02-05T07:00:00"),
        ({"y": "2024", "m": "02"}, "$y-$m-01", None, "2024-02-01T00:00:00"),
        ({"dt": "2024/02/05"}, None, "yyyy/MM/dd[ HH:mm]", "2024-02-05T00:00:00"),
        ({"dt": "20240205T07"}, None, "yyyyMMdd'T'HH", "2024-02-05T07:00:00"),
        ({"dt": "hello"}, None, None, None),
        ({"dt": None}, None, None, None),
        ({"dt": "2024-13-01"}, None, "yyyy-MM-dd", None),
        ({"dt": "2024-02-05", "h": None}, "$dt $h", None, None),
    ],
)
def test_the_time_of_partition_values(
    values: dict[str, str | None], pattern: str | None, formatter: str | None, time: str | None
) -> None:
    found = partition_time(values, PartitionRetention(DAY, pattern=pattern, formatter=formatter))
    assert found == (None if time is None else local(time))


def test_patterns_with_more_than_digits_are_refused() -> None:
    for pattern in ("EEE yyyy", "MMM d", "yyyy Q"):
        with pytest.raises(Unsupported):
            compile_formatter(pattern)


def test_partitions_expire_in_their_order_and_not_too_many() -> None:
    now = local("2024-02-10T00:00:00")
    parts = [PartitionAge(str(d).encode(), (f"2024-02-0{d}",), now - d * DAY) for d in (9, 3, 1, 2, 7)]
    life = PartitionRetention(3 * DAY, at_most=2)
    assert [p.values[0] for p in expired_partitions(parts, ["dt"], life, now)] == ["2024-02-01", "2024-02-02"]
    assert len(expired_partitions(parts, ["dt"], PartitionRetention(3 * DAY), now)) == 3
    by_update = PartitionRetention(3 * DAY, strategy=UPDATES)
    assert [p.values[0] for p in expired_partitions(parts, ["dt"], by_update, now)] == ["2024-02-07", "2024-02-09"]
    assert PartitionRetention.of(TableOptions.of({})) is None
    with pytest.raises(Unsupported):
        PartitionRetention.of(
            TableOptions.of({"partition.expiration-time": "1 d", "partition.expiration-strategy": "custom"})
        )


def test_a_day_is_a_day() -> None:
    assert local("2024-02-05T00:00:00") == (datetime(2024, 2, 5) - datetime(1970, 1, 1)).days * DAY
