"""Fixtures of the Spark tests; the session is that of all tests."""

from __future__ import annotations

from pathlib import Path

import pytest

import paimon


@pytest.fixture
def catalog(tmp_path: Path) -> paimon.Catalog:
    """A fresh warehouse with a database."""
    made = paimon.connect(tmp_path / "lake")
    made.create_database("db")
    return made
