"""The contract of CommitGroups for threads, and what a forked child has of its parent's calls."""

from __future__ import annotations

from paimon.adapters.commit_groups import ThreadCommitGroups
from paimon.ports.commit_groups import CommitGroups, TakeMembers
from paimon.testing.contracts import CommitGroupsContract


class TestThreadCommitGroups(CommitGroupsContract):
    def make_groups(self) -> CommitGroups:
        return ThreadCommitGroups()


def test_a_child_forgets_the_calls_of_its_parent() -> None:
    """A fork during a call copies its queue, whose leader does not exist in the child."""
    groups, taken = ThreadCommitGroups(), list[int]()

    def lead(take: TakeMembers[int]) -> None:
        groups.abandon(lambda _: None)
        groups.run("k", 1, lambda take: taken.extend(take(9)))

    groups.run("k", 0, lead)
    assert taken == [1]
