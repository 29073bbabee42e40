"""Run all modules that share Spark, Java's Paimon or a PostgreSQL server in one worker.

Each worker would start its own, and Java runs slowly until it has compiled what it runs.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from xdist.scheduler import LoadFileScheduling

ROOT = Path(__file__).resolve().parents[2]
_FIXTURE = re.compile(
    r"\b(?P<spark>spark: SparkSession|import (?:\w+, )*open_engine)\b|\b(?P<java>java: JavaPaimon)\b"
    r'|getfixturevalue\("(?P<postgres>postgres)"\)'
)
"""How a test module uses a fixture that lasts a session."""


@cache
def find_group(module: str) -> str:
    """Return the first of the fixtures that a test module uses; for other modules, the module itself."""
    found = _FIXTURE.search((ROOT / module).read_text("utf8"))
    return str(found.lastgroup) if found else module


class GroupScheduling(LoadFileScheduling):
    """The cases of a module run in one worker, and so do the modules of a group."""

    def _split_scope(self, nodeid: str) -> str:
        return find_group(nodeid.partition("::")[0])
