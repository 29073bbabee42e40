"""The decisions of publishing, as tables: what is done after a put, and where a snapshot belongs."""

from __future__ import annotations

from itertools import product

import pytest

from paimon.domain.commit.publishing import Place, Seen, Step, after_put, built_on, place
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry


def entry(name: str, kind: FileKind = FileKind.ADD) -> ManifestEntry:
    return ManifestEntry(kind, bytes(12), 0, 1, DataFileMeta(name, 100, 10))


def identities(*names: str) -> set[tuple[object, ...]]:
    return {entry(name).identity for name in names}


@pytest.mark.parametrize(
    ("created", "seen", "base_stands", "step"),
    [
        (True, Seen.MINE, True, Step.CONFIRM),
        (False, Seen.MINE, False, Step.CONFIRM),  # the answer got lost
        (False, Seen.ANOTHERS, True, Step.GO_ON),
        (False, Seen.NOTHING, True, Step.PUT_AGAIN),
        (False, Seen.NOTHING, False, Step.GIVE_UP),
        (False, Seen.UNREADABLE, False, Step.PUT_AGAIN),  # the next put tells more
    ],
)
def test_after_a_put(created: bool, seen: Seen, base_stands: bool, step: Step) -> None:
    assert after_put(created, seen, base_stands) is step


@pytest.mark.parametrize(
    ("descends", "is_oldest", "is_newest", "next_stands", "stands", "answer"),
    [
        (None, True, True, None, True, Place.IN_HISTORY),
        (True, True, False, True, True, Place.IN_HISTORY),
        (True, True, False, False, False, Place.IN_HISTORY),  # expired since, as all before it
        (False, True, False, True, True, Place.ASTRAY),
        (None, True, False, True, True, Place.UNKNOWN),
        (None, True, False, False, True, Place.ASTRAY),  # the next expired before it
        (None, True, False, False, False, Place.UNKNOWN),  # it expired itself
        (True, False, False, False, True, Place.UNKNOWN),
        (None, False, True, None, True, Place.UNKNOWN),
    ],
)
def test_where_a_snapshot_belongs(
    descends: bool | None, is_oldest: bool, is_newest: bool, next_stands: bool | None, stands: bool, answer: Place
) -> None:
    assert place(descends, is_oldest, is_newest, next_stands, stands) is answer


def test_a_snapshot_is_called_astray_only_on_evidence() -> None:
    for descends, is_oldest, is_newest, following, stands in product(
        (True, False, None), (True, False), (True, False), (True, False, None), (True, False)
    ):
        if place(descends, is_oldest, is_newest, following, stands) is Place.ASTRAY:
            assert descends is not True
            assert descends is False if following else stands


@pytest.mark.parametrize(
    ("delta", "held", "index", "later", "answer"),
    [
        ([entry("a"), entry("b")], identities("a", "b", "x"), (None, None), None, True),
        ([entry("a"), entry("b")], identities("x"), (None, None), None, False),
        ([entry("a"), entry("b")], identities("a"), (None, None), None, None),
        ([entry("a", FileKind.DELETE)], identities("a"), (None, None), None, False),
        ([entry("a", FileKind.DELETE)], identities("x"), (None, None), None, True),
        ([entry("a"), entry("a", FileKind.DELETE)], identities(), (None, None), None, True),
        ([], identities(), ("i1", "i2"), "i2", True),
        ([], identities(), ("i1", "i2"), "i1", False),
        ([], identities(), ("i1", "i2"), "i3", None),
        ([], identities("x"), ("i1", "i1"), "i3", True),
    ],
)
def test_a_later_snapshot_tells_by_its_files(
    delta: list[ManifestEntry],
    held: set[tuple[object, ...]],
    index: tuple[str | None, str | None],
    later: str | None,
    answer: bool | None,
) -> None:
    assert built_on(delta, held, index, later) is answer
