"""Which files a stream scan reads of a snapshot, how incremental options are parsed, and differences of two states."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.changelog import difference_columnar as columnar
from paimon.domain.changelog import difference_reference as reference
from paimon.domain.changelog.equal_rows import mask_equal_values
from paimon.domain.changelog.incremental_range import (
    Bounds,
    IncrementalOptions,
    get_follow_rules,
    parse_auto_tag_time,
    parse_incremental_options,
    parse_snapshot_range,
)
from paimon.domain.changelog.stream_read import Change, FollowRules
from paimon.domain.errors import InvalidRequest
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.kinds import RowKind
from paimon.domain.row.values import to_array, to_values
from paimon.domain.snapshot.snapshot import CommitKind, Snapshot
from paimon.domain.types.data_types import BigIntType, DataField, VarCharType
from paimon.testing.strategies import data_types, values_of

SNAPSHOT = Snapshot(7, 0, "base", "delta", "user", 1, CommitKind.APPEND, 0)


def snapshot(kind: CommitKind, changelog: bool) -> Snapshot:
    return evolve(SNAPSHOT, commit_kind=kind, changelog_manifest_list="list" if changelog else None)


@pytest.mark.parametrize(
    ("rules", "kind", "changelog", "expected"),
    [
        (FollowRules(False), CommitKind.APPEND, False, Change.DELTA),
        (FollowRules(False), CommitKind.APPEND, True, Change.DELTA),
        (FollowRules(False), CommitKind.COMPACT, True, Change.NOTHING),
        (FollowRules(False), CommitKind.ANALYZE, False, Change.NOTHING),
        (FollowRules(False), CommitKind.OVERWRITE, False, Change.NOTHING),
        (FollowRules(True), CommitKind.APPEND, True, Change.CHANGELOG),
        (FollowRules(True), CommitKind.APPEND, False, Change.NOTHING),
        (FollowRules(True), CommitKind.COMPACT, True, Change.CHANGELOG),
        (FollowRules(True), CommitKind.OVERWRITE, True, Change.NOTHING),
        (FollowRules(True, shows_replaced_rows=True), CommitKind.OVERWRITE, False, Change.REPLACED),
        (FollowRules(False, shows_added_rows=True), CommitKind.OVERWRITE, False, Change.DELTA),
    ],
)
def test_what_is_followed(rules: FollowRules, kind: CommitKind, changelog: bool, expected: Change) -> None:
    assert rules.get_change(snapshot(kind, changelog)) is expected


@pytest.mark.parametrize(
    ("mode", "producer", "produces"),
    [("auto", "none", False), ("auto", "input", True), ("delta", "lookup", False), ("changelog", "none", True)],
)
def test_modes_choose_the_files(mode: str, producer: str, produces: bool) -> None:
    assert get_follow_rules(mode, producer) == FollowRules(produces)


def test_incremental_options() -> None:
    assert parse_incremental_options(TableOptions.of({})) is None
    between = parse_incremental_options(TableOptions.of({"incremental-between": " 2 , 6"}))
    assert between == IncrementalOptions(Bounds.NAMES, "2", "6")
    assert between is not None and parse_snapshot_range(between) == (2, 6)
    assert parse_incremental_options(TableOptions.of({"incremental-to-auto-tag": "2024-01-02"})) == IncrementalOptions(
        Bounds.AUTO_TAG, "", "2024-01-02"
    )


@pytest.mark.parametrize("text", ["2", "2,", "1,2,3", ",", "6,2", "a,2"])
def test_incremental_options_that_make_no_range(text: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        wanted = parse_incremental_options(TableOptions.of({"incremental-between": text}))
        assert wanted is not None
        parse_snapshot_range(wanted)
    assert refused.value.subject == "incremental-between"


def test_one_incremental_read_at_a_time() -> None:
    with pytest.raises(InvalidRequest, match="are set together"):
        parse_incremental_options(
            TableOptions.of({"incremental-between": "1,2", "incremental-to-auto-tag": "2024-01-01"})
        )


@pytest.mark.parametrize(
    ("name", "period", "formatter", "time"),
    [
        ("2024-01-02", "daily", "with_dashes", datetime(2024, 1, 2)),
        ("20240102", "daily", "without_dashes", datetime(2024, 1, 2)),
        ("2024-01-02 05", "hourly", "with_dashes", datetime(2024, 1, 2, 5)),
        ("2024010206", "hourly", "without_dashes_and_spaces", datetime(2024, 1, 2, 6)),
        ("2024-01-02 06", "two-hours", "without_dashes_and_spaces", datetime(2024, 1, 2, 6)),
        ("20240102", "daily", "with_dashes", None),
        ("2024-1-2", "daily", "with_dashes", None),
        ("release", "daily", "with_dashes", None),
    ],
)
def test_names_of_automatic_tags(name: str, period: str, formatter: str, time: datetime | None) -> None:
    options = TableOptions.of({"tag.creation-period": period, "tag.period-formatter": formatter})
    millis = None if time is None else time.replace(tzinfo=UTC).timestamp() * 1000
    assert parse_auto_tag_time(name, options) == millis


KEYS = (DataField(0, "a", VarCharType()), DataField(1, "b", BigIntType()))
A_KEY = st.tuples(st.sampled_from(["", "a", "b"]), st.integers(-2, 2))
A_ROW = st.tuples(
    A_KEY, st.sampled_from(list(RowKind)), st.sampled_from([None, 0.0, -0.0, 1.5, float("nan"), float("inf")])
)
STATES = st.lists(A_ROW, unique_by=lambda row: row[0], max_size=12).map(
    lambda rows: [reference.KeyedRow(key, kind, (value,)) for key, kind, value in sorted(rows, key=lambda r: r[0])]
)


def table(rows: list[reference.KeyedRow]) -> pa.Table:
    return pa.table(
        {
            "a": pa.array([row.key[0] for row in rows], pa.string()),
            "b": pa.array([row.key[1] for row in rows], pa.int64()),
            "v": pa.array([row.values[0] for row in rows], pa.float64()),
            "_VALUE_KIND": pa.array([int(row.kind) for row in rows], pa.int8()),
        }
    )


@settings(max_examples=100)
@given(STATES, STATES)
def test_the_difference_equals_its_reference(before: list[reference.KeyedRow], after: list[reference.KeyedRow]) -> None:
    found = columnar.compute_difference(table(before), table(after), KEYS)
    expected = sorted(reference.compute_difference(before, after), key=lambda row: row.key)
    assert repr(found.to_pylist()) == repr(table(expected).to_pylist())


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        (RowKind.INSERT, RowKind.UPDATE_AFTER, []),
        (RowKind.INSERT, RowKind.DELETE, [RowKind.DELETE]),
        (RowKind.INSERT, RowKind.UPDATE_BEFORE, [RowKind.UPDATE_BEFORE]),
        (RowKind.DELETE, RowKind.INSERT, [RowKind.INSERT]),
        (RowKind.DELETE, RowKind.DELETE, [RowKind.DELETE]),
        (RowKind.INSERT, None, [RowKind.DELETE]),
        (RowKind.UPDATE_BEFORE, None, []),
    ],
)
def test_a_later_retract_is_a_difference_and_an_earlier_one_is_no_row(
    before: RowKind, after: RowKind | None, shown: list[RowKind]
) -> None:
    old, new = ([reference.KeyedRow(("a", 1), kind, (1.5,))] if kind is not None else [] for kind in (before, after))
    found = columnar.compute_difference(table(old), table(new), KEYS)
    assert [RowKind(kind) for kind in found["_VALUE_KIND"].to_pylist()] == shown
    assert found.to_pylist() == table(reference.compute_difference(old, new)).to_pylist()


@st.composite
def two_columns(draw: st.DrawFn) -> tuple[Any, list[Any], list[Any]]:
    kind = draw(data_types())
    some = draw(st.lists(st.none() | values_of(kind), min_size=1, max_size=6))
    other = draw(st.lists(st.sampled_from(some) | st.none() | values_of(kind), min_size=len(some), max_size=len(some)))
    return kind, some, other


@settings(max_examples=100)
@given(two_columns(), st.integers(0, 2))
def test_equality_of_values_equals_its_reference(columns: tuple[Any, list[Any], list[Any]], skipped: int) -> None:
    kind, some, other = columns
    left, right = to_array(some, kind).slice(skipped), to_array(other, kind).slice(skipped)
    pairs = zip(to_values(left, kind), to_values(right, kind), strict=True)
    assert mask_equal_values(left, right).tolist() == [reference.is_equal_value(a, b) for a, b in pairs]


def test_a_row_is_itself_and_zeros_have_signs() -> None:
    assert reference.is_equal_value(float("nan"), float("nan"))
    assert not reference.is_equal_value((0.0,), (-0.0,))
    assert not reference.is_equal_value([1], [1, 2])
