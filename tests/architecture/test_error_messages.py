"""One file lists every message that the library can raise, for review. Each message follows the rules of messages."""

from __future__ import annotations

import re

import pytest
from support.error_messages import LISTING, list_messages


@pytest.fixture(scope="module")
def messages() -> list[str]:
    return list_messages()


def test_the_listing_has_every_message(messages: list[str]) -> None:
    hint = "review the difference, then run python tests/support/error_messages.py --write"
    assert LISTING.read_text("utf8").splitlines() == messages, hint


@pytest.mark.parametrize("subject", ["we", "it", "you"])
def test_the_subject_of_a_message_is_an_object(messages: list[str], subject: str) -> None:
    pattern = re.compile(rf": \w+: (\{{[^}}]*\}} \| )?{subject} ", re.IGNORECASE)
    assert not [line for line in messages if pattern.search(line)]


def test_messages_have_at_most_two_sentences(messages: list[str]) -> None:
    literal = [(line, re.sub(r"\{[^}]*\}", "x", line.split(": ", 2)[-1].split(" (hint: ")[0])) for line in messages]
    assert not [line for line, text in literal if len(re.findall(r"[.!?](?:\s+[A-Z]|$)", text)) > 2]
