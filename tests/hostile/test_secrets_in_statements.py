"""Secrets in SQL statements are in no file, no error and no repr."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest

import paimon
from paimon.domain.errors import PaimonError
from paimon.domain.secrets import mask_statement

SECRET = "hush+planted/7"
STATEMENTS = [
    f"CREATE CATALOG c WITH ('type'='paimon', 'warehouse'='s3://b', 's3.secret-key'='{SECRET}')",
    f"CREATE CATALOG c WITH ('s3.secret-key'\n  =\n '{SECRET} it''s')",
    f"CREATE CATALOG c WITH ('secret'='{SECRET}",
    f"CREATE CATALOG c WITH ('secret' '{SECRET}')",
    f"CREATE CATALOG c WITH ('secret', '{SECRET}')",
    f"CREATE CATALOG c WITH (secret = {SECRET})",
    f"CREATE CATALOG c WITH ('secret = '{SECRET}')",
    f'CREATE CATALOG c WITH ("secret"="{SECRET}")',
    f"CREATE CATALOG c WITH (`secret`='{SECRET}')",
    f"CREATE CATALOG c WITH ('uri'='jdbc:postgresql://h/db?user=me&password={SECRET}')",
    f"CREATE CATALOG c WITH ('storage'='{{\"secret\":\"{SECRET}\"}}')",
    "CREATE CATALOG c WITH ('uri'='postgresql://me:hush+planted@h/db')",
    f"CREATE CATALOG c ('secret' => '{SECRET}')",
    f"CREAT CATALOG c WITH ('secret'='{SECRET}')",
    f"SET 'fs.s3.secret' = '{SECRET}'",
    f"SELECT 1; SET 'a.password' = '{SECRET}'",
    f"ALTER TABLE d.t SET ('token'='{SECRET}')",
    f"SELECT * FROM d.t /*+ OPTIONS('fs.secret'='{SECRET}') */ WHERE",
    f"CALL sys.compact(password => '{SECRET}')",
]
PLAIN = [
    "SELECT * FROM t WHERE key = 5 AND token = 'kept'",
    "INSERT INTO t VALUES ('token', 'kept')",
    "CREATE TABLE t (key INT, token STRING COMMENT 'the secret') WITH ('bucket'='4')",
    "SELECT 'a' AS password, 'it''s; kept' FROM t; DELETE FROM t WHERE signature = 'kept'",
]


@pytest.mark.parametrize("statement", STATEMENTS)
def test_errors_and_results_show_no_secret(tmp_path: Path, statement: str) -> None:
    session = paimon.connect(tmp_path).sql_session()
    broken = (f"{statement} oops", statement[:-1], statement.replace(")", ""), statement.replace("WITH", "WIHT"))
    for text in (statement, *broken):
        try:
            shown = repr(session.sql(text))
        except PaimonError as error:
            shown = f"{error} {error!r} {vars(error)}"
        assert "hush" not in shown


@pytest.mark.parametrize("statement", STATEMENTS)
def test_masks_keep_positions(statement: str) -> None:
    masked = mask_statement(statement)
    assert len(masked) == len(statement) and "hush" not in masked
    assert [i for i, c in enumerate(masked) if c == "\n"] == [i for i, c in enumerate(statement) if c == "\n"]
    assert mask_statement(masked) == masked


@pytest.mark.parametrize("statement", PLAIN)
def test_other_statements_stay_as_they_are(statement: str) -> None:
    assert mask_statement(statement) == statement


def test_a_long_script_is_masked_in_linear_time() -> None:
    script = "INSERT INTO t VALUES (1, 'x'), (2, 'y')\n" * 20_000 + f"; SET 'secret' = '{SECRET}'"
    assert mask_statement(script).endswith(f"'{'*' * len(SECRET)}'")


def test_the_caret_stays_below_the_mistake(tmp_path: Path) -> None:
    with pytest.raises(PaimonError) as refused:
        paimon.connect(tmp_path).sql(f"CREATE CATALOG c WITH ('secret'='{SECRET}' oops)")
    _, line, caret = refused.value.message.rstrip("\n").split("\n")
    assert line[caret.index("^") :].startswith("oops")


def test_the_history_of_the_shell_has_no_secret(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("prompt_toolkit")
    from paimon.cli.sql_shell import _open_history

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    path = tmp_path / "paimon" / "sql_history"
    path.parent.mkdir()
    path.write_text(f"\n# 2026-11-01 10:00:00\n+{STATEMENTS[0]}\n\n# 2026-11-01 10:01:00\n+SELECT 1;\n")
    path.chmod(0o644)
    history = _open_history()
    for statement in [*STATEMENTS, *PLAIN]:
        history.append_string(statement)
    assert "hush" not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert history.get_strings()[-1] == PLAIN[-1], "a shell recalls what it ran"
    again = list(_open_history().load_history_strings())
    assert again[: len(PLAIN)] == PLAIN[::-1] and again[-2] == "SELECT 1;"


def test_a_new_history_is_private(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("prompt_toolkit")
    from paimon.cli.sql_shell import _open_history

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    _open_history().append_string("SELECT 1;")
    path = tmp_path / "paimon" / "sql_history"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600 and "+SELECT 1;" in path.read_text()


@pytest.mark.parametrize("given", [f"postgresql://me:{SECRET}@h/db", f"jdbc:x://h/db?password={SECRET}"])
def test_an_unknown_metastore_shows_no_password(tmp_path: Path, given: str) -> None:
    with pytest.raises(PaimonError) as refused:
        paimon.connect(tmp_path, metastore=given)
    assert "is not known" in str(refused.value)
    assert "hush" not in f"{refused.value!r} {vars(refused.value)}"
