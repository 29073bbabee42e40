"""The benchmark of change data capture runs at a thousandth of its size."""

from __future__ import annotations

from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


def test_change_events_are_measured(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    import change_events

    change_events.main(["--events=300", "--repeat=1"])
    lines = [line.strip("| ").split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert {line[0] for line in lines} == set(change_events.FORMATS) and len(lines) == 15
    assert all(float(line[2]) >= 0 and float(line[4]) > 0 for line in lines)
