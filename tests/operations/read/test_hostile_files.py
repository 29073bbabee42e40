"""Damaged files of every kind: a read returns the correct rows, a typed error that names the object, or an undetectable
difference.

50 damages run always, 500 with --nightly, 20,000 with --long, and also edits of members and records. What a format
cannot detect (a flip in a page without a checksum, a file in the place of another of the same shape) is counted
separately.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from support.case_lists import mark_nightly
from support.damaged_tables import (
    TABLES,
    Damage,
    Outcome,
    Reader,
    build,
    check_damage,
    draw_damages,
    draw_value_replacements,
    read_in_all_ways,
)

PARTS, COUNT = 10, 50
NEVER = ("raw", "hangs", "dies", "unnamed")
SEEN_ALWAYS = ("cut",)
"""A file that ends too early is always seen."""


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("sound")
    build(home)
    return home


def outcomes(
    home: Path, seed: int, count: int, drawn: Callable[[Path, int], Iterator[Damage]] = draw_damages
) -> list[Outcome]:
    truth = {name: read_in_all_ways(home / "d.db" / name) for name in TABLES}
    reader = Reader()
    try:
        return [check_damage(home, truth, d, reader) for d in itertools.islice(drawn(home, seed), count)]
    finally:
        reader.close()


def check(found: list[Outcome]) -> Counter[str]:
    bad = [o for o in found if o.judgement in NEVER or (o.judgement == "unseen" and o.damage.kind in SEEN_ALWAYS)]
    assert not bad, "\n\n".join(f"{o.judgement}: {o.damage}\n{o.detail}" for o in bad[:5])
    return Counter(o.judgement for o in found)


@pytest.mark.slow("reads 50 damaged files in a process that may die")
@pytest.mark.parametrize("part", mark_nightly(range(PARTS), always=[0]))
def test_some_damages(sound: Path, part: int) -> None:
    counts = check(outcomes(sound, 100 + part, COUNT))
    assert counts["refused"] > counts["same"]
    assert counts["unseen"] < 8


@pytest.mark.parametrize("part", mark_nightly(range(2), always=[0]))
def test_some_restructured_files(sound: Path, part: int) -> None:
    counts = check(outcomes(sound, 200 + part, 30, draw_value_replacements))
    assert counts["refused"] > 7


@pytest.mark.long
@pytest.mark.parametrize("part", range(10))
def test_many_restructured_files(sound: Path, part: int, record_property: Callable[[str, object], None]) -> None:
    for judgement, count in check(outcomes(sound, 20_000 + part, 200, draw_value_replacements)).items():
        record_property(judgement, count)


@pytest.mark.long
@pytest.mark.parametrize("part", range(40))
def test_many_damages(sound: Path, part: int, record_property: Callable[[str, object], None]) -> None:
    for judgement, count in check(outcomes(sound, 10_000 + part, 500)).items():
        record_property(judgement, count)
