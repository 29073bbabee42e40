"""Any history of operations on a table: everything listed can be read, and no other file is left."""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.case_lists import mark_products
from support.expiry_table import ExpiryTable, has_succeeded, steps

STEPS = sorted(steps(ExpiryTable.new()))
NUMBERS = st.integers(0, 9)
HISTORIES = st.lists(st.tuples(st.sampled_from([*STEPS, "append", "compact", "append"]), NUMBERS), max_size=30)
SIMPLE = ["append", "compact", "overwrite", "tag", "expire", "delete tag"]
TAMES = {"expire", "expire looking everywhere", "expire branch", "expire changelogs", "delete tag", "clean"}
"""Steps after which all remaining states have the same content as before."""


@pytest.mark.parametrize(("producer", "decoupled"), mark_products(["none", "input"], [False, True]))
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(history=HISTORIES)
def test_every_listed_state_can_be_read(producer: str, decoupled: bool, history: list[tuple[str, int]]) -> None:
    options = {"changelog-producer": producer, "snapshot.num-retained.max": "20"}
    options |= {"changelog.num-retained.max": "30"} if decoupled else {}
    w = ExpiryTable.new(options)
    before: dict[str, list[str]] = {}
    for name, number in history:
        has_succeeded(lambda name=name, number=number: steps(w)[name](number))  # type: ignore[misc]
        after = w.reads()
        if name in TAMES:
            assert after == {state: before[state] for state in after}, name
        before = after
    w.remove_orphan_files()
    assert w.reads() == before
    if not decoupled:
        assert w.list_shared_files() == w.reachable()


@settings(max_examples=40, deadline=None)
@given(history=st.lists(st.tuples(st.sampled_from(SIMPLE), NUMBERS), max_size=20))
def test_expiry_leaves_no_orphan_files(history: list[tuple[str, int]]) -> None:
    """Without branches and rollbacks the files on disk are the reachable ones at any time, and cleaning finds none."""
    w = ExpiryTable.new({"changelog-producer": "input"})
    for name, number in history:
        has_succeeded(lambda name=name, number=number: steps(w)[name](number))  # type: ignore[misc]
        assert w.list_shared_files() == w.reachable()
    assert w.remove_orphan_files() == []
