"""Java writes the golden tables anew and reads what is stored of them; the library reads the same by the kit."""

from __future__ import annotations

from pathlib import Path

import pytest
from support.case_lists import check_each
from support.golden_package import pack_golden, replay_golden
from support.golden_tables import golden_directory
from support.java_paimon import JavaPaimon

from paimon.testing.conformance.__main__ import main

pytestmark = [pytest.mark.interop, pytest.mark.nightly]


@pytest.mark.slow("Java writes 160 tables")
def test_the_library_is_right_by_tables_that_java_writes_now(
    java: JavaPaimon, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stored, fresh = golden_directory(), tmp_path / "set"
    names = list(replay_golden(java, stored, fresh))
    assert len(names) > 150

    def check(name: str) -> None:
        latest = f"{name}/expected/latest.jsonl"
        assert (fresh / latest).read_text("utf8") == (stored / latest).read_text("utf8")

    check_each(names, check)
    archive = pack_golden(fresh, tmp_path / "set.tar.xz")
    arguments = ["--adapter", "paimon.testing.conformance.own:PaimonForPython", "--golden", str(archive)]
    status = main([*arguments, "--feature", "golden", "--seconds", "3600", "--quiet"])
    assert status == 0, capsys.readouterr().out
