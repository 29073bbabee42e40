"""The generated pages of docs/reference are those that their generators return now."""

from __future__ import annotations

import argparse

import pytest
from generate_reference import FOLDER, generate_pages
from reference_generator import command_line, errors, options, python_interface, system_tables

import paimon
from paimon.domain.options.known_options import FAMILIES, OPTIONS


def test_the_committed_pages_are_what_their_generators_return() -> None:
    pages = generate_pages()
    stale = [name for name, text in pages.items() if (FOLDER / name).read_text("utf8") != text]
    assert stale == [], "run: python docs/generate_reference.py"
    assert {f"python/{path.name}" for path in FOLDER.glob("python/*.md")} <= pages.keys()


def test_every_command_and_option_of_the_command_line_is_listed() -> None:
    text = command_line.generate_page()
    for command, _ in command_line.iterate_commands(command_line.build_parser()):
        _, heading, rest = text.partition(f"# {command.prog}\n")
        assert heading
        section = rest.partition("\n##")[0]
        for action in command._actions:
            for spelling in set(action.option_strings[-1:]) - {"--help"}:
                assert (f"`{spelling}" in section) is (action.help != argparse.SUPPRESS), (command.prog, spelling)


def test_the_environment_does_not_change_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = command_line.generate_page()
    monkeypatch.setenv("PAIMON_WAREHOUSE", "/elsewhere")
    monkeypatch.setenv("COLUMNS", "40")
    assert command_line.generate_page() == usual


def test_every_option_has_a_row() -> None:
    before, functions, after = options.generate_page().partition("## Aggregate functions")
    assert functions  # `primary-key` is the name of an option and of a function
    lines = [*before.splitlines(), *after.partition("\n## ")[2].splitlines()]
    for key in (*OPTIONS, *(family.key for family in FAMILIES)):
        assert sum(line.startswith(f"| `{key}` ") for line in lines) == 1, key


class Effects:
    """An option as a registry with effects describes it."""

    def __init__(self, effect: object, reason: str = "") -> None:
        self.effect = effect
        self.reason = reason


def test_effects_of_options_are_listed_from_the_registry() -> None:
    assert options._effect_of(Effects("refused")) == "refused"
    assert options._effect_of(Effects("no effect", "Compaction is complete.")) == "no effect: Compaction is complete."
    assert options._effect_of(object()) == ""


def test_every_public_name_is_listed() -> None:
    text = "\n".join(python_interface.generate_pages().values())
    missing = [name for name in paimon.__all__ if f"paimon.{name}" not in text and f"# {name}\n" not in text]
    assert not missing


def test_every_public_method_of_a_table_has_a_heading() -> None:
    text = python_interface.generate_pages()["python/table.md"]
    methods = [name for name in dir(paimon.Table) if not name.startswith("_") and callable(getattr(paimon.Table, name))]
    assert len(methods) > 20
    assert [name for name in methods if f"## Table.{name}\n" not in text] == []


def test_fields_of_errors_are_those_of_an_instance() -> None:
    error = paimon.InvalidRequest("wrong", subject="bucket")
    assert {name for name, _ in errors.list_fields(paimon.InvalidRequest)} == error.__dict__.keys()
    overwritten = paimon.CommitOverwritten(1, "user", 2, "other")
    assert {name for name, _ in errors.list_fields(paimon.CommitOverwritten)} == overwritten.__dict__.keys()


def test_every_system_table_is_listed() -> None:
    with pytest.raises(paimon.InvalidRequest) as refused, system_tables.open_sample() as orders:
        orders.system_table("no such table")
    assert str(refused.value.hint).removeprefix("known are: ").split(", ") == system_tables.list_names()
