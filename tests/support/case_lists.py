"""Lists of like cases: one test that checks all of them, and cases of which only some run at every level."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import product
from typing import Any, TypeVar

import pytest

Case = TypeVar("Case")

SHOWN = 20


def check_each(cases: Iterable[Case], check: Callable[[Case], object]) -> None:
    """Run a check, which raises for a wrong case, on every case."""
    failures = []
    for case in cases:
        try:
            check(case)
        except Exception as error:
            failures.append(f"{case!s:.200}: {type(error).__name__} {error!s:.500}")
    assert not failures, f"{len(failures)} cases fail:\n" + "\n".join(failures[:SHOWN])


def mark_products(
    longest: Collection[object], *others: Collection[object], always: Collection[object] | None = None
) -> list[object]:
    """Return all combinations of some lists of values; each value is in one that runs at every level.

    The longest list comes first; of it, only the values of `always` if they are given. The other combinations run in
    nightly runs only.
    """
    axes = [list(longest), *map(list, others)]
    assert [len(axis) for axis in axes] == sorted(map(len, axes), reverse=True), "the longest list comes first"
    chosen = [place for place, value in enumerate(axes[0]) if always is None or value in always]
    assert always is None or len(chosen) == len(always), "`always` names values of the longest list"
    lengths = [len(axis) for axis in axes]
    daily = {(place, *_select_places(number, lengths)[1:]) for number, place in enumerate(chosen)}
    combinations = product(*(range(len(axis)) for axis in axes))
    return [
        pytest.param(
            *(axis[place] for axis, place in zip(axes, places, strict=True)),
            marks=[] if places in daily else [pytest.mark.nightly],
        )
        for places in combinations
    ]


def _select_places(number: int, lengths: list[int]) -> tuple[int, ...]:
    """Return a place in each list. Each time a list begins again, the next one moves on, so that other values meet."""
    places, shift = list[int](), 0
    for length in lengths:
        places.append((number + shift) % length)
        shift += number // length
    return tuple(places)


def mark_nightly(cases: Iterable[Case], always: Collection[Case]) -> list[object]:
    """Return the values of a parameter; those that are not in `always` run in nightly runs only.

    A tuple, which has the values of several parameters, may be named by its first one.
    """
    found = list[object]()
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        is_daily = case in always or values[0] in always
        found.append(pytest.param(*values, marks=[] if is_daily else pytest.mark.nightly))
    assert any(map(_is_daily, found)), "a case of the kind runs at every level"
    return found


def parametrize_daily(
    parametrize: Callable[..., None], names: object, values: Iterable[object], *args: Any, ids: Any = None, **named: Any
) -> None:
    """Parametrize a test without the nightly values, unless all are; `ids` may be a list."""
    given = list(values)
    daily = [n for n, value in enumerate(given) if _is_daily(value)] or range(len(given))
    chosen = [given[n] for n in daily]
    if ids is not None and not callable(ids):
        ids = [list(ids)[n] for n in daily]
    parametrize(names, chosen, *args, ids=ids, **named)


def _is_daily(value: object) -> bool:
    return all(getattr(mark, "name", "") != "nightly" for mark in getattr(value, "marks", ()))


def mark_lengths(cases: Iterable[Case], always: Collection[Case], short: int, full: int) -> list[object]:
    """Return each case with the length of its history: those of `always` run short ones, nightly runs all in full."""
    full_ones = [pytest.param(case, full, marks=pytest.mark.nightly) for case in cases]
    return [*(pytest.param(case, short) for case in always), *full_ones]
