"""The Hypothesis profile `ci` draws the same examples each time, and the default profile draws new ones."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.case_lists import mark_nightly
from support.example_profiles import PROFILE_VARIABLE

ROOT = Path(__file__).resolve().parents[2]
PRINT_EXAMPLES = """
import sys
from support.example_profiles import load_profile

load_profile()
if sys.argv[1:] == ["load"]:
    import paimon.cli.main, paimon.engines, paimon.testing.simulation.campaign

from hypothesis import given, settings, strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

@settings(max_examples=300, deadline=None)
@given(st.text(max_size=10), st.floats())
def print_values(text, number):
    print(ascii(text), number)

class Machine(RuleBasedStateMachine):
    @rule(text=st.text(max_size=10))
    def print_step(self, text):
        print(ascii(text))

print_values()
run_state_machine_as_test(Machine, settings=settings(max_examples=30))
"""


def draw_examples(profile_name: str | None, *arguments: str) -> list[str]:
    """Return the examples of a property and of a state machine, which a new process draws."""
    environment = {name: value for name, value in os.environ.items() if name != PROFILE_VARIABLE}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    if profile_name is not None:
        environment[PROFILE_VARIABLE] = profile_name
    command = [sys.executable, "-c", PRINT_EXAMPLES, *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout.splitlines()


def test_the_ci_profile_draws_the_same_examples_with_any_loaded_modules() -> None:
    examples = draw_examples("ci")
    assert len(set(examples)) > 300
    assert draw_examples("ci", "load") == examples


@pytest.mark.parametrize("ci", mark_nightly(["", "true"], always=["true"]))
def test_the_default_profile_draws_new_examples(monkeypatch: pytest.MonkeyPatch, ci: str) -> None:
    monkeypatch.setenv("CI", ci)  # Hypothesis has settings of its own for CI systems
    assert draw_examples(None) != draw_examples(None)


def test_an_unknown_profile_is_refused() -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        draw_examples("unknown")
    assert "'unknown'" in refused.value.stderr


def test_ci_selects_the_profile() -> None:
    assert f"export {PROFILE_VARIABLE}=ci\n" in (ROOT / ".ci" / "run").read_text("utf8")
