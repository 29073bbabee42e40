"""The ten mistakes that the log compares with other libraries: each message has the remedy that the log shows."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"
(LOG,) = (BENCHMARKS / "results").glob("first-mistakes-*.md")


def test_ten_mistakes_name_a_remedy_as_the_log_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.chdir(tmp_path)
    import first_mistakes

    section = LOG.read_text("utf8").partition("| Mistake | paimon |\n")[2].partition("\n\n")[0]
    logged = dict(re.findall(r"^\| ([a-z, ]+) \| (.+) \|$", section, re.M))
    messages = first_mistakes.collect_messages("paimon")
    assert messages.keys() == logged.keys() and len(messages) == 10
    for mistake, message in messages.items():
        text = message.partition(": ")[2].replace("|", " ")
        assert " ".join(text.split()) == logged[mistake]


def test_the_sums_of_the_log_are_those_of_its_rows() -> None:
    rows = [line.split(" | ")[1:] for line in LOG.read_text("utf8").splitlines() if line.count(" | ") == 5]
    *cells, sums = ([cell.strip(" |*") for cell in row] for row in rows[1:])
    assert len(cells) == 10
    for column, total in enumerate(sums):
        given = [row[column] for row in cells if row[column] != "–"]
        assert total == f"{given.count('yes')} of {len(given)}"
