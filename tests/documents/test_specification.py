"""The specification for readers: its examples are those of real tables, and its size is limited."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from support.specification_examples import BLOCK, EXAMPLES, PAGES

VECTORS = Path(__file__).resolve().parents[1] / "data" / "vectors" / "binary_row.jsonl"
TEXTS = {page.stem: page.read_text("utf8") for page in sorted(PAGES.glob("*.md"))}
SHOWN = {block["name"]: block["text"] for text in TEXTS.values() for block in BLOCK.finditer(text)}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_are_those_of_tables(name: str, tmp_path: Path) -> None:
    made = EXAMPLES[name](tmp_path) + "\n"
    assert SHOWN[name] == made, "write again: PYTHONPATH=tests python -m support.specification_examples"


def test_every_block_is_an_example_or_runs() -> None:
    assert SHOWN.keys() == EXAMPLES.keys()
    fences = re.findall(r"^```[a-z]+.*$", "\n".join(TEXTS.values()), re.M)
    assert len(fences) == len(EXAMPLES) + 1, "one block is code, and runs in this module"


def test_buckets_of_the_page_are_those_of_java() -> None:
    (code,) = re.findall(r"```python\n(.*?)```", TEXTS["rows"], re.S)
    names: dict[str, Any] = {}
    exec(compile(code, "rows.md", "exec"), names)
    for line in VECTORS.read_text("utf8").splitlines():
        vector = json.loads(line)
        for count, bucket in vector["buckets"]["default"].items():
            assert names["choose_bucket"](bytes.fromhex(vector["binaryRowHex"]), int(count)) == bucket
    shown = re.findall(r": ([0-9a-f]+) -> bucket (\d) of 4", SHOWN["buckets"])
    assert [names["choose_bucket"](bytes.fromhex(row), 4) for row, _ in shown] == [int(b) for _, b in shown]


def test_the_specification_is_short() -> None:
    lines = [line for text in TEXTS.values() for line in text.splitlines()]
    assert len(lines) <= 500
    assert [line for line in lines if len(line) > 120] == []
