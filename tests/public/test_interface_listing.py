"""The public interface changes only on purpose: names, parameters and defaults are listed in one file for review."""

from __future__ import annotations

import ast

import pytest
from reference_generator.stable_names import list_stable_names
from support.public_interface import LISTING, list_interface

import paimon
from paimon import embed

EXAMPLES = LISTING.parents[2] / "examples"


def test_the_listing_has_the_whole_interface() -> None:
    hint = "review the difference, then run python -m support.public_interface --write in tests/"
    assert LISTING.read_text("utf8").splitlines() == list_interface(), hint


@pytest.mark.parametrize("example", ["own_format", "own_storage", "draw_picks"])
def test_examples_for_embedders_use_stable_names_only(example: str) -> None:
    stable = {f"{module}.{name}" for module, names in list_stable_names().items() for name in names}
    stable |= {f"paimon.embed.{name}" for name in embed.__all__} | {"paimon.ports.files.WHOLE_BYTES"}
    stable |= {f"{getattr(paimon, name).__module__}.{name}" for name in paimon.__all__ if name[0].isupper()
               if hasattr(getattr(paimon, name), "__module__")}  # fmt: skip
    tree = ast.parse((EXAMPLES / f"{example}.py").read_text("utf8"))
    nodes = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module]
    used = {f"{node.module}.{alias.name}" for node in nodes for alias in node.names}
    assert {name for name in used if name.startswith("paimon.")} - stable == set()
