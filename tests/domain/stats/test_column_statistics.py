"""Column statistics: bounds are correct also when truncated, parts combine, and the stored form is complete."""

import math
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.table_options import TableOptions
from paimon.domain.row.values import to_array
from paimon.domain.stats.collect import (
    Keep,
    StatsMode,
    StatsRules,
    apply_stats_mode,
    collect_column_stats,
    combine_column_stats,
    parse_mode,
    to_key_stats,
    to_value_stats,
    upper_bound,
)
from paimon.domain.stats.simple_stats import EMPTY_STATS, ColumnStats, from_simple_stats, to_simple_stats
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField

TEXT = dt.VarCharType()
COLUMNS = {
    dt.IntType(): st.integers(-(2**31), 2**31 - 1),
    dt.BooleanType(): st.booleans(),
    dt.DoubleType(): st.floats() | st.sampled_from([0.0, -0.0, math.nan]),
    dt.FloatType(): st.floats(width=32),
    TEXT: st.text(max_size=6),
    dt.DecimalType(20, 2): st.integers(-(10**12), 10**12).map(lambda n: Decimal(n).scaleb(-2)),
    dt.TimestampType(6): st.integers(-(10**15), 10**15).map(lambda n: n * 1000),
    dt.DateType(): st.integers(-(10**6), 10**6),
}


def rank(value):
    if not isinstance(value, float):
        return value.encode() if isinstance(value, str) else value
    return math.isnan(value), 0.0 if math.isnan(value) else value, math.copysign(1.0, value) > 0


@st.composite
def columns(draw):
    data_type = draw(st.sampled_from(list(COLUMNS)))
    return data_type, draw(st.lists(st.none() | COLUMNS[data_type], max_size=12))


@given(columns(), st.integers(0, 12))
def test_collected_bounds_are_values_in_javas_order(column, cut):
    data_type, values = column
    found = collect_column_stats(to_array(values, data_type), data_type)
    present = sorted((v for v in values if v is not None), key=rank)
    assert found.null_count == len(values) - len(present)
    expected = (present[0], present[-1]) if present else (None, None)
    assert repr((found.minimum, found.maximum)) == repr(expected)
    parts = [collect_column_stats(to_array(part, data_type), data_type) for part in (values[:cut], values[cut:])]
    assert repr(combine_column_stats(*parts, data_type)) == repr(found)


@given(st.text(), st.integers(1, 8))
@settings(max_examples=100)
def test_cut_bounds_hold(text, length):
    truncated = apply_stats_mode(ColumnStats(text, text, 0), TEXT, StatsMode(Keep.TRUNCATED, length))
    if truncated.maximum is None:
        assert truncated.minimum is None and set(text[:length]) == {"\U0010ffff"}
        return
    assert len(truncated.minimum) <= length and len(truncated.maximum) <= length
    assert truncated.minimum.encode() <= text.encode() <= truncated.maximum.encode()


@pytest.mark.parametrize(
    ("text", "length", "bound"),
    [
        ("long", 4, "long"), ("longer", 4, "lonh"), ("a\U0010ffffx", 2, "b"), ("\ud7ffx", 1, "\ue000"),
        ("\U0010ffff\U0010ffff", 1, None), ("😀😀", 1, "😁"),
    ],
)  # fmt: skip
def test_upper_bounds(text, length, bound):
    assert upper_bound(text, length) == bound


def test_modes():
    stats = ColumnStats("aaaa", "bbbb", 3)
    assert apply_stats_mode(stats, TEXT, parse_mode("none")) is None
    assert apply_stats_mode(stats, TEXT, parse_mode("counts")) == ColumnStats(None, None, 3)
    assert apply_stats_mode(stats, TEXT, parse_mode(" Truncate(2) ")) == ColumnStats("aa", "bc", 3)
    assert apply_stats_mode(stats, TEXT, parse_mode("full")) == stats
    assert apply_stats_mode(ColumnStats(b"a", b"b", 3), dt.VarBinaryType(), parse_mode("full")) == ColumnStats(
        None, None, 3
    )
    for wrong in ("truncate(0)", "truncate", "all"):
        with pytest.raises(InvalidRequest, match="statistics mode"):
            parse_mode(wrong)


@given(st.lists(columns(), max_size=5))
def test_the_stored_form_is_read_back(drawn):
    types = [t for t, _ in drawn]
    stats = tuple(collect_column_stats(to_array(values, t), t) for t, values in drawn)
    stored = to_simple_stats(stats, types)
    assert repr(from_simple_stats(stored, [*types, dt.IntType()])) == repr(stats)


FIELDS = [DataField(0, "a", dt.IntType()), DataField(1, "b", TEXT), DataField(2, "c", dt.ArrayType(TEXT))]
STATS = [ColumnStats(1, 2, 0), ColumnStats("x" * 20, "x" * 20, 0), ColumnStats(null_count=1)]


def rules(format_name="parquet", **options):
    texts = {key.replace("_", "-").replace("--", "."): text for key, text in options.items()}
    return StatsRules.of(TableOptions.of(texts), 0, format_name)


def test_dense_and_sparse_forms():
    types = [f.type for f in FIELDS]
    dense, names = to_value_stats(FIELDS, STATS, rules())
    assert names == ("a", "b")
    assert from_simple_stats(dense, types)[1] == ColumnStats("x" * 16, "x" * 15 + "y", 0)
    whole, names = to_value_stats(FIELDS, STATS, rules("orc"))
    assert names is None and from_simple_stats(whole, types)[2] == STATS[2]
    sparse, names = to_value_stats(FIELDS, STATS, rules(metadata__stats_dense_store="false"))
    assert names is None and from_simple_stats(sparse, types)[2] == ColumnStats()
    assert to_value_stats(FIELDS, STATS, rules(metadata__stats_mode="none")) == (EMPTY_STATS, ())


def test_modes_by_column_level_and_position():
    own = rules(metadata__stats_mode="full", fields__a__stats_mode="none")
    assert to_value_stats(FIELDS[:2], STATS[:2], own)[1] == ("b",)
    first = rules(metadata__stats_keep_first_n_columns="1")
    assert to_value_stats(FIELDS[:2], STATS[:2], first)[1] == ("a",)
    per_level = TableOptions.of({"metadata.stats-mode.per.level": "0:none,5:counts"})
    assert StatsRules.of(per_level, 0, "parquet").mode == StatsMode(Keep.NONE)
    assert StatsRules.of(per_level, 5, "parquet").mode == StatsMode(Keep.COUNTS)
    assert StatsRules.of(per_level, 1, "parquet").mode == StatsMode(Keep.TRUNCATED, 16)
    changelog = TableOptions.of({"changelog-file.stats-mode": "none"})
    assert StatsRules.of(changelog, 0, "parquet", changelog=True).mode == StatsMode(Keep.NONE)


def test_keys_always_have_a_place():
    keys = [DataField(1, "_KEY_b", TEXT)]
    stored = to_key_stats(keys, STATS[1:2], rules(metadata__stats_mode="none"))
    assert from_simple_stats(stored, [TEXT]) == (STATS[1],)
    none = to_key_stats(keys, STATS[1:2], rules("avro", metadata__stats_mode="none"))
    assert from_simple_stats(none, [TEXT]) == (ColumnStats(),)
    thin, _ = to_value_stats(FIELDS, STATS, rules(), thin_keys=frozenset({"b"}))
    assert from_simple_stats(thin, [f.type for f in FIELDS])[1] == STATS[1]
