"""Hypothesis profiles: the default draws new examples in each run, ``ci`` draws the same examples each time.

The environment variable ``PAIMON_TEST_PROFILE`` selects the profile. ``.ci/run`` sets it to ``ci``.

Invariant: under ``ci`` the examples of a test depend on its source only, not on the tests that ran before it.
"""

from __future__ import annotations

import os
from collections.abc import Iterable

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings
from hypothesis.internal.conjecture import providers

PROFILE_VARIABLE = "PAIMON_TEST_PROFILE"
DEFAULT_PROFILE = "paimon"
REPEATED_PROFILE = "ci"


def load_profile() -> None:
    """Load the profile that the environment selects, before any module creates settings of its own.

    Settings inherit from the profile that is loaded when they are created.

    Raises
    ------
    hypothesis.errors.InvalidArgument
        The environment names a profile that does not exist.
    """
    # A loaded machine draws slowly. That is no fault of the code under test.
    # `derandomize` is explicit, because Hypothesis turns it on where the variable `CI` is set.
    settings.register_profile(
        DEFAULT_PROFILE,
        deadline=None,
        database=None,
        derandomize=False,
        suppress_health_check=[HealthCheck.too_slow],
    )
    settings.register_profile(REPEATED_PROFILE, settings.get_profile(DEFAULT_PROFILE), derandomize=True)
    profile_name = os.environ.get(PROFILE_VARIABLE, DEFAULT_PROFILE)
    settings.load_profile(profile_name)
    if profile_name == REPEATED_PROFILE:
        ignore_constants_of_modules()


def ignore_constants_of_modules() -> None:
    """Do not draw constants that Hypothesis collects from the source of loaded modules.

    Tests load modules in an order that differs between parallel runs. The setting `derandomize` does not cover this.
    """
    if hasattr(providers, "_get_local_constants"):  # since Hypothesis 6.131
        providers._get_local_constants = providers.Constants


SHARE_OF_EXAMPLES = 3
"""A property draws one in three, except in nightly runs."""
FEWEST_EXAMPLES = 10


def is_property(item: pytest.Item) -> bool:
    """Return whether the case draws examples."""
    return isinstance(item, pytest.Function) and is_hypothesis_test(item.obj)


def reduce_examples(items: Iterable[pytest.Item]) -> None:
    """Let properties draw their share in this run; no fewer than ten, or than they have.

    Those that compare a rule with its reference, and say so in their name, draw all: they find rare mistakes.
    """
    reduced = (item for item in items if is_property(item) and "reference" not in item.name)
    functions = {getattr(item.obj, "__func__", item.obj) for item in reduced}  # type: ignore[attr-defined]
    for function in functions:  # cases of several classes may share one
        own = function._hypothesis_internal_use_settings
        count = min(own.max_examples, max(FEWEST_EXAMPLES, own.max_examples // SHARE_OF_EXAMPLES))
        function._hypothesis_internal_use_settings = settings(own, max_examples=count)
