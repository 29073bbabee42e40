"""Python's collector waits while a plan is made, and goes on as it was."""

from __future__ import annotations

import gc
from collections.abc import Iterator

import pytest

from paimon.operations.undisturbed import undisturbed


@pytest.fixture
def collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    yield
    if was_enabled:
        gc.enable()
    else:
        gc.disable()


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(collector: None, enabled: bool) -> None:
    if enabled:
        gc.enable()
    else:
        gc.disable()
    with pytest.raises(KeyError), undisturbed():
        assert not gc.isenabled()
        with undisturbed():
            pass
        assert not gc.isenabled()
        raise KeyError
    assert gc.isenabled() == enabled
