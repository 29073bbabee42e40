"""Rows on a terminal and in a pipe: every value, within bounded memory and the width of the screen."""

from __future__ import annotations

import base64
import json
import math
import os
import subprocess
import sys
from datetime import date
from datetime import time as day_time
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import csv, feather
from support.case_lists import mark_nightly
from support.terminal_commands import COMMAND, HOME, RUN, all_on_terminal, into_file, on_terminal
from support.warm_processes import run_code

import paimon
from paimon.cli.main import main
from paimon.cli.sql_shell import write_row_file
from paimon.display.column_texts import to_json_lines, to_plain_texts
from paimon.display.row_formats import ROW_FORMATS
from paimon.display.text_table import measure_layout, measure_widths
from paimon.domain.text_layout import TextColumn, choose_columns, cut_text, display_width, fit_to_screen, to_blocks

ROWS = 1_000
WIDE = 19
MANY = 300_000


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("lake")
    catalog = paimon.connect(root)
    catalog.create_database("db")
    table = catalog.create_table(
        "db.t", "id BIGINT NOT NULL, name STRING", primary_keys=["id"], options={"bucket": 1, "write-only": True}
    )
    rows = pa.table({"id": range(ROWS), "name": [f"row {i}" for i in range(ROWS)]})
    table.write(rows)
    table.write(rows)
    columns = {f"a_column_{i}": pa.array([i], pa.int64()) for i in range(WIDE)}
    wide = catalog.create_table("db.wide", pa.table(columns).schema)
    wide.write(pa.table(columns))
    return root


# On a terminal.


def test_a_terminal_shows_the_first_rows_the_total_and_how_to_see_more(lake: Path) -> None:
    lines = on_terminal(["cat", f"{lake}/db.db/t"])
    assert len(lines) < 60
    assert lines[-1] == "40 of 1,000 rows: see more with --limit N or --all"
    some = on_terminal(["cat", f"{lake}/db.db/t", "--where", "id >= 990"])
    assert some[-1] == "10 rows"
    assert on_terminal(["cat", f"{lake}/db.db/t", "--limit", "100"])[-1] == "100 rows"


def test_many_rows_stream_as_lines_also_on_a_terminal(lake: Path) -> None:
    lines = on_terminal(["cat", f"{lake}/db.db/t", "--all"])
    assert lines[0].split() == ["id", "name"]
    assert lines[-1] == "(1,000 rows)"
    assert [line.split(maxsplit=1) for line in lines[2:-1]] == [[str(i), f"row {i}"] for i in range(ROWS)]


def test_columns_in_the_middle_are_elided_to_the_width_of_the_screen(lake: Path) -> None:
    lines = on_terminal(["head", f"{lake}/db.db/wide"], 80)
    assert max(map(display_width, lines)) <= 80
    text = "\n".join(lines)
    for expected in ("a_column_0", "…", "a_column_18", f"of {WIDE} columns: choose columns"):
        assert expected in text
    all_of_them = "\n".join(on_terminal(["head", f"{lake}/db.db/wide"], 400))
    assert all(f"a_column_{i}" in all_of_them for i in range(WIDE))
    assert "columns: choose" not in all_of_them


@given(
    st.lists(st.lists(st.text("ab 東́", max_size=90), min_size=2, max_size=2), min_size=1, max_size=9),
    st.integers(30, 200),
)
def test_columns_use_the_screen_and_no_more(texts: list[list[str]], screen: int) -> None:
    columns = [TextColumn(f"c{number}", False, tuple(cells)) for number, cells in enumerate(texts)]
    fitted = fit_to_screen(columns, screen)
    assert fitted.width <= screen
    if fitted.is_cut:
        # What is cut could not be shown: each column has at most one cell less than its share.
        assert fitted.width > screen - 2 * len(fitted.columns) - 1
    elif not fitted.elided:
        assert list(fitted.columns) == columns


def test_numbers_and_headings_are_never_cut() -> None:
    number = TextColumn("a", True, ("123456789012345678901234567890",))
    heading = TextColumn("a_heading_of_more_than_twenty_cells", False, ("x" * 99,))
    for screen in range(1, 200):
        fitted = fit_to_screen([number, heading, number], screen)
        assert fitted.columns[0] == number
        assert all(column.name in ("a", heading.name, "…") for column in fitted.columns)


@given(st.lists(st.integers(1, 40), min_size=1, max_size=30), st.integers(0, 300), st.integers(1, 4))
def test_printed_columns_fit_and_are_from_both_ends(widths: list[int], room: int, ellipsis: int) -> None:
    chosen = choose_columns(widths, room, ellipsis)
    assert chosen[0] == 0
    assert chosen == sorted(set(chosen))
    if len(chosen) == len(widths):
        assert sum(widths) <= room or len(widths) == 1
        return
    used = sum(widths[i] for i in chosen) + ellipsis
    assert used <= room or chosen == [0]
    gaps = [b - a for a, b in zip(chosen, [*chosen[1:], len(widths)], strict=True)]
    assert sum(gap > 1 for gap in gaps) == 1, "one gap"


ASSIGNED = st.characters(exclude_categories=["Cs", "Cn"])


@given(st.lists(st.text(ASSIGNED) | st.text("a東\u0301\u200d한", max_size=9), min_size=1))
def test_widths_of_columns_are_those_of_their_texts(texts: list[str]) -> None:
    assert measure_widths(pa.array(texts)).to_pylist() == [display_width(text) for text in texts]


def test_streamed_lines_are_aligned_by_their_width_on_a_terminal() -> None:
    batch = pa.record_batch({"text": ["東京", "é", None], "more": ["x", "x", "x"]})
    layout = measure_layout(batch)
    assert layout.to_lines(batch).to_pylist() == ["東京  x\n", "é     x\n", "∅     x\n"]


@given(st.text(max_size=40) | st.text("a/b東", max_size=40), st.integers(1, 20))
def test_cut_texts_are_no_wider_than_allowed(text: str, width: int) -> None:
    assert display_width(cut_text(text, width)) <= max(width, 1)
    assert display_width(text) > width or cut_text(text, width) == text


@pytest.fixture(scope="module")
def long_names(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A warehouse with a table of a long name and 43 snapshots, and the name."""
    root, name = tmp_path_factory.mktemp("names"), "shop_of_the_world.orders_of_the_year_2026_and_later"
    catalog = paimon.connect(root)
    catalog.create_database("shop_of_the_world")
    columns = "id BIGINT NOT NULL, day STRING COMMENT 'c d'"
    table = catalog.create_table(name, columns, primary_keys=["id"], options={"write-only": "true"})
    for number in range(43):
        table.write([{"id": number, "day": "d"}])
    return root, name


Screens = dict[str, list[str]]
CONDITION = " OR ".join(f"id = {number}" for number in range(30))


@pytest.fixture(scope="module", params=mark_nightly([80, 200], always=[80]))
def screen(request: pytest.FixtureRequest, long_names: tuple[Path, str]) -> tuple[int, Screens]:
    """A width, and what each command prints on a terminal of this width."""
    root, name = long_names
    at, sql = ["--warehouse", str(root)], ["sql", str(root), "-e"]
    commands = {
        "ls": ["ls", str(root)], "snapshots": ["snapshots", name, *at], "show": ["show", name, *at],
        "help": ["--help"], "help of a command": ["expire", "snapshots", "--help"],
        "million": [*sql, "SELECT range AS number FROM range(1000000)"], "forty": [*sql, "SELECT range FROM range(40)"],
        "explain": [*sql, f"EXPLAIN SELECT * FROM {name} WHERE {CONDITION}"], "describe": [*sql, f"DESCRIBE {name}"],
        "create": [*sql, f"SHOW CREATE TABLE {name}"], "procedures": [*sql, "CALL sys.help()"],
        "long": [*sql, "SELECT repeat('東京é', 99) AS a, 7 AS id, chr(27) || '[31m' AS steering, repeat('x', 99) AS x"],
    }  # fmt: skip
    return request.param, all_on_terminal(commands, request.param)


def test_records_are_whole(screen: tuple[int, Screens], long_names: tuple[Path, str]) -> None:
    columns, found = screen
    for command in ("ls", "show", "describe", "help", "help of a command", "create", "explain", "procedures"):
        assert not any("…" in line for line in found[command]), command
    for command in ("ls", "describe", "help", "help of a command"):
        assert max(map(display_width, found[command])) <= max(columns, len(f"tables of {long_names[0]}")), command
    assert any(long_names[1] in line for line in found["ls"])
    assert any("table: " in line for line in found["ls"]) == (columns == 80)
    assert {"columns", "options", f"{long_names[1]}"} <= set(found["show"])
    assert found["create"][0].startswith("CREATE TABLE `") and found["create"][-1] == ")"
    assert "id = 28 OR id = 29" in "".join(found["explain"]) and found["explain"][0] == "statement: Query"
    assert "--older-than" in "".join(found["help of a command"])


def test_the_last_snapshots_are_listed(screen: tuple[int, Screens]) -> None:
    columns, found = screen
    lines, lines_of_one = found["snapshots"], 4 if columns == 80 else 1
    assert lines[-1] == "… 3 earlier rows, 43 in total: see all with --output json"
    assert 40 * lines_of_one <= len(lines) <= 40 * lines_of_one + 8
    assert max(map(display_width, lines)) <= columns
    text = "\n".join(lines)
    assert ("snapshot: 4   kind: APPEND" in text) == (columns == 80)
    assert "snapshot: 3 " not in text


def test_a_query_shows_its_first_rows_and_the_total(screen: tuple[int, Screens], lake: Path) -> None:
    _, found = screen
    assert found["million"] == [
        "number", "------", *(f"{number:6}" for number in range(40)), "… 999,960 more rows, 1,000,000 in total"
    ]  # fmt: skip
    assert found["forty"][-1] == "40 rows"
    assert len(into_file(["sql", str(lake), "-e", "SELECT range FROM range(1000)"]).splitlines()) > 1000


@pytest.mark.parametrize("columns", [80, 200])
def test_the_shell_writes_the_rows_of_a_query_to_a_file(
    lake: Path, tmp_path: Path, columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    file = tmp_path / "rows.md"
    typed = f"\\o {file}\rSELECT range FROM range(3);\rSELECT range FROM range(50);\rexit\r"
    lines = on_terminal(["sql", str(lake)], columns, typed=typed)
    assert f"3 rows written to {file}" in lines
    assert "… 10 more rows, 50 in total" in lines
    assert file.read_text().splitlines() == ["| range |", "| ---: |", "| 0 |", "| 1 |", "| 2 |"]


def test_long_values_are_cut_at_the_width_of_the_screen(screen: tuple[int, Screens]) -> None:
    columns, found = screen
    heading, rule, row, footer = found["long"]
    assert [*heading.split()] == ["a", "id", "steering", "x"]
    assert columns - 3 <= len(rule) <= columns and display_width(row) <= columns
    assert row.startswith("東京é東京") and row.endswith("x…") and "\x1b" not in row and "\ufffd[31m" in row
    assert footer == "1 row; values with … are cut: choose columns, or see all with --output json"


@given(
    st.lists(st.lists(st.text("ab ", max_size=30), min_size=3, max_size=3), min_size=1, max_size=4),
    st.integers(5, 60),
)
def test_blocks_have_every_value(rows: list[list[str]], screen: int) -> None:
    columns = [TextColumn(name, False, cells) for name, cells in zip("xyz", zip(*rows, strict=True), strict=True)]
    lines = list(to_blocks(columns, screen))
    for line in lines:
        assert display_width(line) <= screen or line.count(": ") == 1
    pairs = [f"{name}: {cell}" for row in rows for name, cell in zip("xyz", row, strict=True) if cell]
    text, position = "\n".join(lines), 0
    for pair in pairs:
        position = text.index(pair, position) + len(pair)


def test_a_table_is_the_same_on_a_terminal_and_in_a_file(lake: Path) -> None:
    drawn = ["id  name", "--  -----", " 0  row 0", " 1  row 1"]
    assert on_terminal(["cat", f"{lake}/db.db/t", "--limit", "2"]) == [*drawn, "2 rows"]
    assert into_file(["cat", f"{lake}/db.db/t", "--limit", "2"]).splitlines() == [*drawn, "(2 rows)"]
    listed = ["snapshots", f"{lake}/db.db/t"]
    assert on_terminal(listed, 200) == into_file(listed).splitlines()
    assert "\x1b" not in into_file(["show", f"{lake}/db.db/t"]) + into_file(["orphans", f"{lake}/db.db/t"])


# In other formats.


FORMATTED = {"id": [1, 2], "a|b": ["x|y\n", None], "d": [Decimal("0.10"), Decimal("2.00")]}


@pytest.mark.parametrize("output", ["json", *ROW_FORMATS])
@pytest.mark.parametrize("rows", [0, 2])
def test_rows_are_written_in_each_format(tmp_path: Path, output: str, rows: int) -> None:
    table, path = pa.table(FORMATTED).slice(0, rows), tmp_path / f"rows.{'md' if output == 'markdown' else output}"
    path.write_text("an earlier file")
    assert write_row_file(table.to_reader(), str(path)) == rows
    assert list(tmp_path.iterdir()) == [path]
    if output == "markdown":
        body = ["| 1 | x\\|y\\n | 0.10 |", "| 2 | ∅ | 2.00 |"][:rows]
        assert path.read_text().splitlines() == ["| id | a\\|b | d |", "| ---: | --- | ---: |", *body]
    elif output == "json":
        assert len(path.read_text().splitlines()) == rows
    else:
        read = {"csv": csv.read_csv, "arrow": feather.read_table, "parquet": pq.read_table}[output]
        assert read(path).num_rows == rows
        assert output == "csv" or read(path).equals(table)


def test_binary_output_goes_to_a_pipe_and_not_to_a_terminal(lake: Path) -> None:
    words = ["cat", f"{lake}/db.db/t", "--output", "parquet"]
    piped = subprocess.check_output([*COMMAND, *words], env=os.environ | {"PYTHONPATH": HOME})
    assert pq.read_table(pa.BufferReader(piped)).num_rows == ROWS
    query = ["sql", str(lake), "-e", "CREATE VIEW v AS SELECT 1 AS x; SELECT * FROM v", "--output", "arrow"]
    assert feather.read_table(pa.BufferReader(run_code(RUN, *query).output)).to_pylist() == [{"x": 1}]
    two = run_code(RUN, "sql", str(lake), "-e", "SELECT 1; SELECT 2", "--output", "parquet")
    assert two.code == 1 and b"one statement only" in two.errors
    with pytest.raises(AssertionError, match=r"redirect it: > rows\.parquet"):
        on_terminal(words)


@pytest.mark.parametrize("words", (["head"], ["show"]))
def test_an_output_that_cannot_be_written_is_an_error_of_one_line(
    lake: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: list[str]
) -> None:
    with os.fdopen(os.open(lake / "db.db" / "t" / "schema" / "schema-0", os.O_RDONLY), "w") as refusing:
        monkeypatch.setattr("sys.stdout", refusing)
        assert main([*words, f"{lake}/db.db/t"]) == 1
    assert capsys.readouterr().err == "paimon: the output cannot be written: Bad file descriptor\n"
    monkeypatch.setattr("sys.stdout", None)
    assert main([*words, f"{lake}/db.db/t"]) == 0
    assert capsys.readouterr().err == ""
    monkeypatch.setattr("sys.stderr", None)
    assert main(["cat", f"{lake}/db.db/t"]) == 0


def test_help_that_cannot_be_written_is_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a").touch()
    for words in (["--help"], ["--version"], ["tag", "create", "--help"], []):
        with os.fdopen(os.open(tmp_path / "a", os.O_RDONLY), "w") as refusing, monkeypatch.context() as context:
            context.setattr("sys.stdout", refusing)
            assert main(words) == 1
        assert capsys.readouterr().err == "paimon: the output cannot be written: Bad file descriptor\n"


def test_a_name_that_is_too_long_for_a_file_is_not_valid(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["cat", "x" * 5000, "--warehouse", str(lake)]) == 1
    assert "is not valid\nhint: write it as 'database.table'" in capsys.readouterr().err


# In a pipe.


def test_a_pipe_gets_every_row_on_a_line(lake: Path) -> None:
    lines = into_file(["cat", f"{lake}/db.db/t"]).splitlines()
    assert [line.split(maxsplit=1) for line in lines[2:-1]] == [[str(i), f"row {i}"] for i in range(ROWS)]
    assert lines[-1] == "(1,000 rows)"
    empty = into_file(["cat", f"{lake}/db.db/t", "--where", "id < 0"]).splitlines()
    assert [empty[0].split(), empty[-1]] == [["id", "name"], "(0 rows)"]


def test_values_cannot_break_a_line_or_steer_a_terminal() -> None:
    (text,) = to_plain_texts(pa.array(["a\nb\tc\r\x1b[31m\x9b\x7f∅"])).to_pylist()
    assert text == "a\\nb\\tc\\r\ufffd[31m\ufffd\ufffd∅"


@pytest.fixture(scope="module")
def large_table(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A table of many rows: its path."""
    catalog = paimon.connect(tmp_path_factory.mktemp("many"))
    catalog.create_database("db")
    table = catalog.create_table("db.t", "id BIGINT, text STRING")
    table.write(pa.table({"id": range(MANY), "text": [f"{i:0100}" for i in range(MANY)]}))
    return table.location


@pytest.mark.parametrize("output", mark_nightly(["table", "json", "csv"], always=["json"]))
def test_many_rows_take_little_time_and_memory(large_table: str, output: str) -> None:
    code = (
        "import resource, sys; from paimon.cli.main import main; main(sys.argv[1:]);"
        "used = resource.getrusage(resource.RUSAGE_SELF);"
        "print(used.ru_maxrss, used.ru_utime + used.ru_stime, file=sys.stderr)"
    )

    def peak(*words: str) -> tuple[int, float, int]:
        done = subprocess.run(
            [sys.executable, "-c", code, "cat", large_table, "--output", output, *words],
            env=os.environ | {"PYTHONPATH": HOME}, capture_output=True, check=True,
        )  # fmt: skip
        kibibytes, seconds = done.stderr.split()
        return int(kibibytes), float(seconds), done.stdout.count(b"\n")

    few, _, _ = peak("--limit", "1")
    kibibytes, seconds, lines = peak()
    assert lines >= MANY
    assert seconds < 20, "a loop over rows takes minutes"
    assert kibibytes - few < 128 * 1024, "rows stay in memory"


# JSON lines against the reference, row by row.


def reference(kind: pa.DataType, value: Any) -> Any:
    """What a value is in JSON, one by one."""
    if value is None:
        return None
    if pa.types.is_decimal(kind):
        return format(value, "f")
    if pa.types.is_floating(kind):
        if math.isfinite(value):
            return value
        return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"
    if pa.types.is_binary(kind):
        return base64.b64encode(value).decode()
    if pa.types.is_date(kind) or pa.types.is_time(kind):
        return value.isoformat(*(["milliseconds"] if pa.types.is_time(kind) else []))
    if pa.types.is_map(kind):
        return [[reference(kind.key_type, k), reference(kind.item_type, v)] for k, v in value]
    if pa.types.is_list(kind):
        return [reference(kind.value_type, v) for v in value]
    if pa.types.is_struct(kind):
        return {field.name: reference(field.type, value[field.name]) for field in kind}
    return value


SCALARS: list[tuple[pa.DataType, st.SearchStrategy[Any]]] = [
    (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    (pa.int8(), st.integers(-128, 127)),
    (pa.bool_(), st.booleans()),
    (pa.float64(), st.floats()),
    (pa.string(), st.text(st.characters(exclude_categories=["Cs"]), max_size=8)),
    (pa.string(), st.text('"\\\n\t\r\x00\x1f/é', max_size=4)),
    (pa.binary(), st.binary(max_size=5)),
    (pa.decimal128(20, 10), st.decimals(-(10**9), 10**9, places=10)),
    (pa.decimal128(38, 0), st.integers(-(10**37), 10**37).map(Decimal)),
    (pa.date32(), st.dates(date(1, 1, 1))),
    (pa.time32("ms"), st.times().map(lambda t: day_time(t.hour, t.minute, t.second, t.microsecond // 1000 * 1000))),
]


def maps_of(kind: pa.DataType, values: st.SearchStrategy[Any]) -> tuple[pa.DataType, st.SearchStrategy[Any]]:
    pairs = st.tuples(st.text("ab", max_size=2), st.none() | values)
    return pa.map_(pa.string(), kind), st.lists(pairs, max_size=3)


KINDS = st.recursive(
    st.sampled_from(SCALARS),
    lambda inner: st.one_of(
        inner.map(lambda i: (pa.list_(i[0]), st.lists(st.none() | i[1], max_size=3))),
        inner.map(lambda i: maps_of(*i)),
        st.lists(inner, min_size=1, max_size=3).map(
            lambda parts: (
                pa.struct([pa.field(f"f{n}", kind) for n, (kind, _) in enumerate(parts)]),
                st.fixed_dictionaries({f"f{n}": st.none() | values for n, (_, values) in enumerate(parts)}),
            )
        ),
    ),
    max_leaves=4,
)  # fmt: skip


@given(st.data())
def test_json_lines_are_those_of_the_reference(data: st.DataObject) -> None:
    columns = data.draw(st.lists(KINDS, min_size=1, max_size=3))
    rows = data.draw(st.integers(0, 6))
    values = [data.draw(st.lists(st.none() | drawn, min_size=rows, max_size=rows)) for _, drawn in columns]
    names = ['a"b', "é", "c"][: len(columns)]
    arrays = [pa.array(v, kind) for v, (kind, _) in zip(values, columns, strict=True)]
    batch = pa.record_batch(arrays, names=names)
    first = data.draw(st.integers(0, rows))
    lines = to_json_lines(batch.slice(first)).to_pylist()
    expected = [
        {n: reference(kind, v[row]) for n, v, (kind, _) in zip(names, values, columns, strict=True)}
        for row in range(first, rows)
    ]
    assert all(line.endswith("\n") and "\n" not in line[:-1] for line in lines)
    assert [json.dumps(json.loads(line)) for line in lines] == [json.dumps(row) for row in expected]
