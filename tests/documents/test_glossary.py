"""The glossary is sorted, and defines each term in one sentence of at most 25 words."""

from __future__ import annotations

import re
from pathlib import Path

GLOSSARY = (Path(__file__).resolve().parents[2] / "docs" / "glossary.md").read_text("utf8")
ENTRIES = re.findall(r"^\| (.+?) \| (.+) \|$", GLOSSARY, re.M)[1:]


def test_terms_are_sorted_and_defined_once() -> None:
    terms = [term.lower() for term, _ in ENTRIES]
    assert len(terms) == GLOSSARY.count("\n|") - 2 >= 90
    assert terms == sorted(set(terms))


def test_each_definition_is_one_short_sentence() -> None:
    sentences = [definition.replace("`", "") for _, definition in ENTRIES]
    assert [s for s in sentences if not s.endswith(".") or re.search(r"\. [A-Z]", s)] == []
    assert [s for s in sentences if len(s.split()) > 25] == []
