"""One test for a list of like cases: it checks all of them, and fails with the list of those that fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

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
