"""Hypothesis profiles: the default draws new examples in each run, ``ci`` draws the same examples each time.

The environment variable ``PAIMON_TEST_PROFILE`` selects the profile. ``.ci/run`` sets it to ``ci``.

Invariant: under ``ci`` the examples of a test depend on its source only, not on the tests that ran before it.
"""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
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
