"""Hypothesis for all tests: machines are slow at times, and nothing is kept between runs."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("paimon", deadline=None, database=None)
settings.load_profile("paimon")
