"""The pages for developers: their links, paths, names and commands exist."""

from __future__ import annotations

import re
from pathlib import Path

from support.document_pages import broken_links

ROOT = Path(__file__).resolve().parents[2]
PATH = ROOT / "CONTRIBUTING.md"
EXTENSIONS = ROOT / "docs" / "how-to" / "extend-the-library.md"
PAGE = PATH.read_text("utf8")
TEXT = PAGE + EXTENSIONS.read_text("utf8")

NEW = {"tests/adapters/formats/test_arrow_data_files.py"}
"""Files that a walk-through creates."""
NAMES = {
    "_TESTS_BY_FILE": "tests/support/option_behaviour.py",
    "RULES": "tests/support/engine_rules.py",
    "DIFFERENT": "tests/support/engine_rules.py",
    "FIELD_OPTIONS": "paimon/domain/options/known_options.py",
    "FILE_FORMATS": "paimon/domain/options/layout_options.py",
    "MERGE_ENGINES": "paimon/domain/merge/merge_engines.py",
    "MORE_OPTIONS": "tests/domain/merge/test_merge_engine_contract.py",
    "OPTIONS_BY_ENGINE": "tests/operations/compact/test_changelog_compaction.py",
    "DRAWN": "tests/domain/changelog/test_compaction_changelog.py",
    "_OPTIONS_BY_ENGINE": "paimon/testing/strategies/merging.py",
    "_LOADERS": "paimon/adapters/formats/on_demand.py",
    "_FOOTER_FORMATS": "paimon/domain/stats/collect.py",
    "_UPDATABLE": "paimon/domain/schema/rules/row_level.py",
    "_delete_hint": "paimon/domain/schema/rules/row_level.py",
    "_holds": "paimon/domain/schema/rules/files.py",
    "ARGUMENTS": "tests/verbs/test_verb_table.py",
    "EXPIRE_CHANGELOGS": "paimon/verbs/expiry_verbs.py",
    "VERBS": "paimon/verbs/verb_table.py",
    "find_expirable_changelogs": "paimon/operations/expire/expire_changelogs.py",
    "atomic_types": "paimon/testing/strategies/types.py",
}
"""Names of the code that the walk-throughs mention, by file."""


def test_links_resolve_and_lines_fit() -> None:
    assert list(broken_links(PATH)) == []
    assert len(PAGE.splitlines()) <= 220
    assert [line for line in PAGE.splitlines() if len(line) > 120] == []


def test_paths_exist() -> None:
    named = set(re.findall(r"(?<![\w/])(?:paimon|tests|docs)/[\w./-]*\w", TEXT)) - NEW
    assert len(named) > 30
    assert sorted(path for path in named if not (ROOT / path).exists()) == []


def test_names_of_the_code_exist() -> None:
    for name, path in NAMES.items():
        assert f"`{name}`" in TEXT, name
        assert re.search(rf"^(?:def )?{name}\b", (ROOT / path).read_text("utf8"), re.MULTILINE), name
