"""The contract of an aggregate function as tests, for every column type that the function takes.

A correct function of `paimon.domain.merge.aggregate.aggregate_functions.AGGREGATE_FUNCTIONS` passes. Derive a class
from `AggregateContract`, set `function_name`, and let pytest collect the class.
"""

from __future__ import annotations

import decimal
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from attrs import evolve, frozen
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from paimon.domain.errors import InvalidRequest
from paimon.domain.merge.aggregate.aggregate_functions import (
    AGGREGATE_FUNCTIONS,
    AggregateFunction,
    check_type,
    sees_actions,
)
from paimon.domain.merge.aggregate.reduce_columnar import aggregate_column
from paimon.domain.merge.aggregate.rule import ADD, RETRACT, SET, Aggregate
from paimon.domain.merge.aggregate.steps_columnar import Steps
from paimon.domain.row.values import to_array
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataField, DataType
from paimon.testing.contracts.files import expect_error

Samples = tuple[DataType, st.SearchStrategy[Any]]
"""A column type, and a strategy of few internal values of it that are not null."""

GROUP_COUNT = 5
NESTED_ROW = dt.RowType(fields=(DataField(0, "id", dt.IntType()), DataField(1, "v", dt.VarCharType())))

_THOROUGH = settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
_QUICK = settings(_THOROUGH, max_examples=20)
_SMALL = st.integers(-3, 3)
_FLOATS = st.sampled_from([0.0, -0.0, 1.5, -2.25, 0.1, 1e30, float("nan"), float("inf"), float("-inf")])
_TEXTS = st.sampled_from(["", "a", "b", "a,b", ",", "é"])
_NESTED_ROWS = st.tuples(st.none() | st.integers(0, 2), st.none() | st.sampled_from(["x", "y"]))


def _decimals(*texts: str) -> st.SearchStrategy[decimal.Decimal]:
    return st.sampled_from(texts).map(decimal.Decimal)


ARRAY_OF_ROWS: Samples = (dt.ArrayType(element=NESTED_ROW), st.lists(_NESTED_ROWS, max_size=3))
SAMPLES: tuple[Samples, ...] = (
    (dt.TinyIntType(), st.sampled_from([-128, -100, -1, 0, 2, 100, 127])),
    (dt.SmallIntType(), _SMALL),
    (dt.IntType(), st.sampled_from([-(2**31), -2, 0, 3, 2**31 - 1])),
    (dt.BigIntType(), st.sampled_from([-(2**63), -(2**62), -1, 0, 5, 2**62, 2**63 - 1])),
    (dt.FloatType(), _FLOATS.filter(lambda value: value != 0.1)),
    (dt.DoubleType(), _FLOATS),
    (dt.DecimalType(precision=9, scale=2), _SMALL.map(lambda n: decimal.Decimal(n * 111).scaleb(-2))),
    (dt.DecimalType(precision=4, scale=1), _decimals("999.9", "-999.9", "0.5", "0.0", "1999.8")),  # as a sum may be
    (
        dt.DecimalType(precision=18, scale=2),
        _decimals("9999999999999999.99", "-9999999999999999.99", "92233720368547758.07"),
    ),
    (dt.DecimalType(precision=19, scale=2), _decimals("9" * 17 + ".99", "-" + "9" * 17 + ".99", "0.01", "10.00")),
    (
        dt.DecimalType(precision=38, scale=2),
        _decimals("9" * 36 + ".99", "-" + "9" * 36 + ".99", "1.00", "-12345678901234567890.50"),
    ),
    (dt.VarCharType(), _TEXTS),
    (dt.DateType(), _SMALL),
    (dt.TimestampType(precision=3), _SMALL.map(lambda n: n * 1_000_000)),
    (dt.BooleanType(), st.booleans()),
    (dt.VarBinaryType(), st.binary(max_size=3)),
    (dt.ArrayType(element=dt.IntType()), st.lists(st.none() | _SMALL, max_size=4)),
    (dt.ArrayType(element=dt.VarCharType()), st.lists(_TEXTS, max_size=4)),
    (
        dt.MapType(key=dt.IntType(nullable=False), value=NESTED_ROW),
        st.lists(st.tuples(_SMALL, st.none() | _NESTED_ROWS), max_size=3, unique_by=lambda entry: entry[0]),
    ),
)
"""One or more samples of each kind of type that functions take."""


@frozen
class AggregateCase:
    """Steps of `GROUP_COUNT` groups: what each record does, its value, and its group. Group ids ascend."""

    aggregate: Aggregate
    actions: tuple[int, ...]
    values: tuple[Any, ...]
    groups: tuple[int, ...]

    @property
    def column(self) -> pa.Array:
        """The values as a column."""
        return to_array(list(self.values), self.aggregate.column.type)

    def to_steps(self) -> Steps:
        """Return the steps of `column`."""
        rows = np.arange(len(self.values))
        return Steps(rows, np.array(self.actions, np.int8), np.array(self.groups, np.int64), GROUP_COUNT)

    def select(self, wanted: Sequence[bool]) -> AggregateCase:
        """Return the case with only the wanted steps."""
        kept = [i for i, is_wanted in enumerate(wanted) if is_wanted]
        actions, values, groups = ([own[i] for i in kept] for own in (self.actions, self.values, self.groups))
        return evolve(self, actions=tuple(actions), values=tuple(values), groups=tuple(groups))


class AggregateContract:
    """Derive, and set `function_name`.

    Override `list_samples` for a function that takes only some values of its types, and `draw_aggregate` for a
    function with options of its own.
    """

    function_name: str

    @property
    def function(self) -> AggregateFunction:
        """The function."""
        return AGGREGATE_FUNCTIONS[self.function_name]

    def list_samples(self) -> Sequence[Samples]:
        """Return the column types to test, with values that are not null."""
        types = self.function.types
        return [samples for samples in SAMPLES if not types or isinstance(samples[0], types)]

    def draw_aggregate(self, draw: st.DrawFn, column: DataField) -> Aggregate:
        """Draw an aggregate of a column, with the options of the function."""
        return Aggregate(column, self.function_name, ignore_retract=draw(st.booleans()), distinct=draw(st.booleans()))

    def test_types_are_checked(self) -> None:
        """A column type that the function does not take is refused; samples are accepted."""
        for data_type, _ in self.list_samples():
            check_type(Aggregate(DataField(0, "c", data_type), self.function_name))
        refused = [t for t, _ in SAMPLES if self.function.types and not isinstance(t, self.function.types)]
        for data_type in refused:
            aggregate = Aggregate(DataField(0, "c", data_type), self.function_name)
            expect_error(InvalidRequest, partial(check_type, aggregate))

    @_THOROUGH
    @given(st.data())
    def test_columnar_equals_reference(self, data: st.DataObject) -> None:
        """For rows in any order, a column that is a slice, and any actions; or both refuse a value."""
        case = data.draw(self._cases(any_action=data.draw(st.booleans())))
        order = np.array(data.draw(st.permutations(range(len(case.values)))), dtype=np.int64)
        steps = case.to_steps()._replace(rows=np.argsort(order))
        moved = case.column.take(order) if len(order) else case.column
        sliced = pa.concat_arrays([moved.slice(0, 1), moved]).slice(min(1, len(moved)))
        expected = self._reduce_by_reference(case)
        if expected is None:
            assert reduce_or_refuse(sliced, case.aggregate, steps) is None
            return
        found = aggregate_column(sliced, case.aggregate, steps)
        assert found.type == case.column.type
        assert to_texts(found) == to_texts(expected)

    @_QUICK
    @given(st.data())
    def test_groups_do_not_matter_to_each_other(self, data: st.DataObject) -> None:
        """Each group alone has the value that it has together with the others."""
        case = data.draw(self._cases())
        together = reduce_or_refuse(case.column, case.aggregate, case.to_steps())
        assume(together is not None)
        for group in range(GROUP_COUNT):
            own = case.select([g == group for g in case.groups])
            alone = aggregate_column(own.column, own.aggregate, own.to_steps())
            assert to_texts(alone)[group] == to_texts(together)[group]

    @_QUICK
    @given(st.data())
    def test_adds_need_no_actions(self, data: st.DataObject) -> None:
        """Steps that are known to only add (`plain`), to each group at least once, have the same result."""
        case = data.draw(self._cases())
        steps = case.select([action == ADD for action in case.actions]).to_steps()
        present, groups = np.unique(steps.groups, return_inverse=True)
        steps = steps._replace(groups=groups.astype(np.int64), group_count=len(present))
        found = reduce_or_refuse(case.column, case.aggregate, steps._replace(plain=True))
        expected = reduce_or_refuse(case.column, case.aggregate, steps)
        assert to_texts(found) == to_texts(expected)

    @_QUICK
    @given(st.data())
    def test_nulls_alone_are_null(self, data: st.DataObject) -> None:
        """A group without a step is null, and so is one whose values are all null."""
        case = data.draw(self._cases())
        blank = evolve(case, values=(None,) * len(case.values), actions=(ADD,) * len(case.values))
        found = aggregate_column(blank.column, blank.aggregate, blank.to_steps())
        assert len(found) == found.null_count == GROUP_COUNT

    @_QUICK
    @given(st.data())
    def test_compaction_is_idempotent(self, data: st.DataObject) -> None:
        """A single value that is set, as by a merge of a singleton, is unchanged; an ADD, too, where it is equal."""
        case = data.draw(self._cases())
        merged = reduce_or_refuse(case.column, case.aggregate, case.to_steps())
        assume(merged is not None)
        actions = np.full(GROUP_COUNT, SET, dtype=np.int8)
        steps = Steps(np.arange(GROUP_COUNT), actions, np.arange(GROUP_COUNT), GROUP_COUNT)
        assert to_texts(aggregate_column(merged, case.aggregate, steps)) == to_texts(merged)
        assert to_texts(aggregate_column(merged, case.aggregate, steps._replace(plain=True))) == to_texts(merged)
        if not sees_actions(case.aggregate):
            added = steps._replace(actions=np.full(GROUP_COUNT, ADD, dtype=np.int8), plain=True)
            assert to_texts(aggregate_column(merged, case.aggregate, added)) == to_texts(merged)

    @_QUICK
    @given(st.data())
    def test_retracts_are_refused_ignored_or_honored(self, data: st.DataObject) -> None:
        """Without a `retract`, records are refused with a hint; `ignore-retract` leaves the value unchanged."""
        case = data.draw(self._cases())
        without = case.select([action != RETRACT for action in case.actions])
        ignoring = evolve(case, aggregate=evolve(case.aggregate, ignore_retract=True))
        left = reduce_or_refuse(without.column, ignoring.aggregate, without.to_steps())
        assert to_texts(reduce_or_refuse(case.column, ignoring.aggregate, case.to_steps())) == to_texts(left)
        if self.function.folding.retract is not None or RETRACT not in case.actions:
            return
        refusing = evolve(case.aggregate, ignore_retract=False)
        error = expect_error(InvalidRequest, partial(aggregate_column, case.column, refusing, case.to_steps()))
        assert isinstance(error, InvalidRequest)
        assert error.hint is not None and error.subject == case.aggregate.column.name

    @_QUICK
    @given(st.data())
    def test_parts_merge_to_the_whole(self, data: st.DataObject) -> None:
        """For functions that are registered as associative: merging parts first changes nothing."""
        if not self.function.associative:
            return
        data_type, values = data.draw(st.sampled_from(self.list_samples()))
        aggregate = Aggregate(DataField(0, "c", data_type), self.function_name)
        rows = data.draw(st.lists(st.none() | values, min_size=2, max_size=12))
        cut = data.draw(st.integers(1, len(rows) - 1))
        reduce = self.function.folding.fold_steps
        parts = [reduce([(ADD, value) for value in part], aggregate) for part in (rows[:cut], rows[cut:])]
        whole = reduce([(ADD, value) for value in rows], aggregate)
        assert repr(reduce([(ADD, value) for value in parts], aggregate)) == repr(whole)

    def _cases(self, any_action: bool = False) -> st.SearchStrategy[AggregateCase]:
        return _draw_case(self, any_action)

    def _reduce_by_reference(self, case: AggregateCase) -> pa.Array | None:
        rows = list(zip(case.actions, case.values, case.groups, strict=True))
        reduce = self.function.folding.fold_steps
        try:
            values = [
                reduce([(a, v) for a, v, g in rows if g == group], case.aggregate) for group in range(GROUP_COUNT)
            ]
        except InvalidRequest:
            return None
        return to_array(values, case.aggregate.column.type)


@st.composite
def _draw_case(draw: st.DrawFn, contract: AggregateContract, any_action: bool) -> AggregateCase:
    data_type, values = draw(st.sampled_from(contract.list_samples()))
    aggregate = contract.draw_aggregate(draw, DataField(0, "c", data_type))
    action = st.integers(0, 5) if any_action else st.sampled_from([ADD, ADD, ADD, RETRACT])
    step = st.tuples(st.integers(0, GROUP_COUNT - 1), action, st.none() | values)
    rows = sorted(draw(st.lists(step, max_size=25)), key=lambda row: row[0])
    groups, actions, drawn = zip(*rows, strict=True) if rows else ((), (), ())
    return AggregateCase(aggregate, tuple(actions), tuple(drawn), tuple(groups))


def reduce_or_refuse(column: pa.Array, aggregate: Aggregate, steps: Steps) -> pa.Array | None:
    """Aggregate a column.

    Parameters
    ----------
    column : pa.Array
        The values.
    aggregate : Aggregate
        The function and its options.
    steps : Steps
        What each record does.

    Returns
    -------
    pa.Array, optional
        One value a group; None where the function refuses a value.
    """
    try:
        return aggregate_column(column, aggregate, steps)
    except InvalidRequest:
        return None


def to_texts(column: pa.Array | None) -> list[str]:
    """Return the values as texts, in which NaN equals NaN and the zeros show their signs."""
    return ["refused"] if column is None else [repr(value) for value in column.to_pylist()]
