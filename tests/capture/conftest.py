"""Tests of pure modules fail if these do I/O."""

from __future__ import annotations

from support.no_effects import no_effects as no_effects
from support.no_effects import others_left_nothing as others_left_nothing
