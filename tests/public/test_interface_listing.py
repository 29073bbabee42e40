"""The public interface changes only on purpose: names, parameters and defaults are listed in one file for review."""

from __future__ import annotations

from support.public_interface import LISTING, list_interface


def test_the_listing_has_the_whole_interface() -> None:
    hint = "review the difference, then run python -m support.public_interface --write in tests/"
    assert LISTING.read_text("utf8").splitlines() == list_interface(), hint
