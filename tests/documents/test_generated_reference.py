"""The generated pages of docs/reference are those that their generators return now."""

from __future__ import annotations

import pytest
from generate_reference import FOLDER, PAGES
from reference_generator import command_line, options

from paimon.domain.options.registry import OPTIONS


@pytest.mark.parametrize("name", PAGES)
def test_the_committed_page_is_what_its_generator_returns(name: str) -> None:
    assert (FOLDER / name).read_text("utf8") == PAGES[name](), "run: python docs/generate_reference.py"


def test_every_command_and_option_of_the_command_line_is_listed() -> None:
    text = command_line.generate_page()
    for command, _ in command_line.iterate_commands(command_line.build_parser()):
        assert f"# {command.prog}\n" in text
        for action in command._actions:
            for spelling in set(action.option_strings) - {"-h", "--help"}:
                assert f"`{spelling}" in text


def test_the_environment_does_not_change_the_page(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = command_line.generate_page()
    monkeypatch.setenv("PAIMON_WAREHOUSE", "/elsewhere")
    monkeypatch.setenv("COLUMNS", "40")
    assert command_line.generate_page() == usual


def test_every_option_has_a_row() -> None:
    lines = options.generate_page().splitlines()
    for key in OPTIONS:
        assert sum(line.startswith(f"| `{key}` ") for line in lines) == 1, key


class Effects:
    """An option as a registry with effects describes it."""

    def __init__(self, effect: object, reason: str = "") -> None:
        self.effect = effect
        self.reason = reason


def test_effects_of_options_are_shown_where_the_registry_has_them() -> None:
    assert options._effect_of(Effects("refused")) == "refused"
    assert options._effect_of(Effects("no effect", "Compaction is complete.")) == "no effect: Compaction is complete."
    assert options._effect_of(object()) == ""
