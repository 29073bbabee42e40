"""The error of a block reaches the caller, whatever its clean-up does."""

from __future__ import annotations

import pytest

from paimon.domain.errors import CommitConflict, StorageError
from paimon.domain.undo import undo_on_failure


def fail() -> None:
    raise StorageError("/lake/t", "is read-only")


def test_an_error_of_the_clean_up_is_a_note_of_the_first_error() -> None:
    with pytest.raises(CommitConflict, match="was first") as found, undo_on_failure(fail):
        raise CommitConflict("Another commit was first")
    (note,) = found.value.__notes__
    assert "clean-up failed" in note and "/lake/t" in note


@pytest.mark.parametrize("first", [KeyboardInterrupt, GeneratorExit])
def test_an_interrupt_stays_one(first: type[BaseException]) -> None:
    with pytest.raises(first), undo_on_failure(fail):
        raise first


def test_a_block_that_ends_is_not_undone() -> None:
    with undo_on_failure(fail):
        pass
