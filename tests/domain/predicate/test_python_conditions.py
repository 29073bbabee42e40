"""Conditions written in Python: an expression that would drop a part of the condition raises an error."""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from operator import and_, or_
from typing import Any

import pytest

from paimon import col
from paimon.domain.errors import InvalidRequest
from paimon.domain.predicate.expression import And, Compare, Not, Operator, Or

ID, DAY = Compare("id", Operator.EQ, 1), Compare("day", Operator.EQ, "b")

DROPPED: dict[str, Callable[[], Any]] = {
    "and": lambda: col("id") == 1 and col("day") == "b",
    "or": lambda: col("id") == 1 or col("day") == "b",
    "not": lambda: not col("id") == 1,  # noqa: SIM201
    "chained": lambda: 1 < col("id") < 3,
    "chained the other way": lambda: 3 > col("id") >= 1,
    "if": lambda: 1 if col("id").is_null() else 2,
    "bool of each kind": lambda: bool(col("id").isin([1])),
    "bool of like": lambda: bool(col("day").like("a%")),
    "bool of and": lambda: bool((col("id") == 1) & (col("day") == "b")),
    "bool of or": lambda: bool((col("id") == 1) | (col("day") == "b")),
    "bool of not": lambda: bool(~(col("id") == 1)),
    "all": lambda: all([col("id") == 1, col("day") == "b"]),
    "any": lambda: any([col("id") == 1, col("day") == "b"]),
    "filter": lambda: list(filter(None, [col("id") == 1])),
    "column and": lambda: col("flag") and col("day") == "b",
    "not a column": lambda: not col("flag"),
    "in a list": lambda: col("id") in [1, 2],
    "not in a tuple": lambda: col("id") not in (1, 2),
    "max": lambda: max(col("id"), 3),
}


@pytest.mark.parametrize("name", DROPPED)
def test_bool_of_a_condition_is_refused_with_a_hint(name: str) -> None:
    with pytest.raises(InvalidRequest) as caught:
        DROPPED[name]()
    for word in ("&", "|", "~", "between"):
        assert word in str(caught.value)


MISUSED: dict[str, tuple[Callable[[], Any], str]] = {
    "in a set": (lambda: col("id") in {1, 2}, "isin"),
    "in a dict": (lambda: col("id") in {1: 2}, "isin"),
    "a text in a column": (lambda: "a" in col("tags"), "contains"),
    "a number as a key": (lambda: col("tags")[1] == 2, "col('m')['key']"),
    "unpacked": (lambda: list(col("id")), "isin"),
    "no parentheses, and": (lambda: col("id") == 1 & col("day") == "b", "parentheses"),
    "no parentheses, or": (lambda: col("id") == 1 | col("day") == "b", "parentheses"),
    "a bare column, and": (lambda: col("flag") & (col("id") == 1), "parentheses"),
    "a bare column behind and": (lambda: (col("id") == 1) & col("flag"), "parentheses"),
    "a bare column inverted": (lambda: ~col("flag"), "True or False"),
    "a value behind and": (lambda: (col("id") == 1) & True, "not a predicate"),
    "a value before or": (lambda: False | (col("id") == 1), "not a predicate"),
    "a text behind or": (lambda: (col("id") == 1) | "day = 'b'", "not a predicate"),
}


@pytest.mark.parametrize("name", MISUSED)
def test_other_python_operators_are_refused_with_a_hint(name: str) -> None:
    make, message = MISUSED[name]
    with pytest.raises(InvalidRequest) as caught:
        make()
    assert message in str(caught.value)


def test_documented_operators_preserve_every_condition() -> None:
    assert ((col("id") == 1) & (col("day") == "b")) == And((ID, DAY))
    assert ((col("id") == 1) | (col("day") == "b")) == Or((ID, DAY))
    assert ~(col("id") == 1) == Not(ID)
    low, high = Compare("id", Operator.GE, 1), Compare("id", Operator.LE, 3)
    assert col("id").between(1, 3) == And((low, high))


def test_a_chain_of_any_length_is_one_level_deep() -> None:
    tests = [col("id") == number for number in range(2000)]
    assert reduce(or_, tests) == reduce(lambda right, left: left | right, reversed(tests)) == Or(tests)
    assert reduce(and_, tests) == And(tests)
    assert ~~tests[0] == tests[0]
