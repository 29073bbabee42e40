"""Lists of like cases: one test that checks all of them, and cases of which only some run at every level."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from itertools import product
from typing import TypeVar

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
    daily = 0
    for case in cases:
        values = case if isinstance(case, tuple) else (case,)
        is_daily = case in always or values[0] in always
        daily += is_daily
        found.append(pytest.param(*values, marks=[] if is_daily else pytest.mark.nightly))
    assert daily, "a case of the kind runs at every level"
    return found


def mark_lengths(cases: Iterable[Case], always: Collection[Case], short: int, full: int) -> list[object]:
    """Return each case with the length of its history: those of `always` run short ones, nightly runs all in full."""
    full_ones = [pytest.param(case, full, marks=pytest.mark.nightly) for case in cases]
    return [*(pytest.param(case, short) for case in always), *full_ones]
