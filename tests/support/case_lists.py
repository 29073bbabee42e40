"""Lists of like cases: one test that checks all of them, and cases of which only some run at every level."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
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


def mark_nightly(cases: Iterable[Case], always: Collection[Case]) -> list[object]:
    """Return the values of a parameter; those that are not in `always` run in nightly runs only."""
    return [case if case in always else pytest.param(case, marks=pytest.mark.nightly) for case in cases]
