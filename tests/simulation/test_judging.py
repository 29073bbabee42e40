"""What the simulated world says of deeds and states that are not as they must be."""

from __future__ import annotations

import pytest

from paimon.testing.world.acting.deeds import Deed, Named, Told
from paimon.testing.world.acting.rows import commit_rows, loaded_rows, reached, state_after
from paimon.testing.world.judging.promises import promises
from paimon.testing.world.plan import Plan, Role

PLAN = Plan(1, (Role.WRITER, Role.TAGGER, Role.READER))
ROUGH = Plan(1, PLAN.roles, flaky={0: "tag/"})


def deed(role: Role, told: Told, number: int = 1, named: Named | None = None) -> Deed:
    return Deed(f"{role.value}-0", role, number, told, 1, 2, named=named)


@pytest.mark.parametrize("version", range(8))
def test_a_state_tells_how_far_its_writer_went(version: int) -> None:
    assert reached(state_after(3, version), [3], 0) == ({3: version}, "")


def test_commits_one_after_the_other_make_the_states() -> None:
    held: dict[int, int] = {}
    for version in range(1, 8):
        for row in commit_rows(2, version).to_pylist():
            if row["kind"] == "-D":
                held.pop(row["id"], None)
            else:
                held[row["id"]] = row["version"]
        assert held == state_after(2, version)


def test_what_no_commit_made_is_seen() -> None:
    second = state_after(0, 2)
    assert "no commit of it made that" in reached({**second, 0: 1}, [0], 0)[1]  # deleted, and there again
    assert "no commit of it made that" in reached({2: 2}, [0], 0)[1]  # an earlier change is gone
    assert "rows of nobody" in reached({**second, 9: 1}, [0], 0)[1]
    assert "rows of nobody" in reached(second, [0], 1)[1]  # what was loaded is gone
    loaded = {row["id"]: row["version"] for row in loaded_rows(1).to_pylist()}
    assert reached({**second, **loaded}, [0], 1) == ({0: 2}, "")


def test_promises_that_were_kept_are_not_told() -> None:
    deeds = [deed(Role.WRITER, Told.DONE), deed(Role.TAGGER, Told.DONE, named=Named("a", 1))]
    assert not [*promises(PLAN, deeds, {("writer-0", 1, "APPEND"): 1}, {"a": 1})]


def test_promises_that_were_not_kept_are_told() -> None:
    refused = [deed(Role.WRITER, Told.REFUSED)]
    stands = {("writer-0", 1, "APPEND"): 1}
    assert [*promises(ROUGH, refused, stands, {})] == ["writer-0 was told that 1 is refused, and it is there"]
    assert not [*promises(ROUGH, [*refused, deed(Role.WRITER, Told.DIED)], stands, {})]
    assert "for no reason" in next(promises(PLAN, refused, {}, {}))
    assert "took place 2 times" in next(promises(ROUGH, refused, {("writer-0", 1, "APPEND"): 2}, {}))
    assert "never asked" in next(promises(ROUGH, refused, {("writer-0", 2, "APPEND"): 1}, {}))


def test_tags_stand_until_their_maker_deletes_them() -> None:
    made = deed(Role.TAGGER, Told.DONE, named=Named("a", 4))
    gone = deed(Role.TAGGER, Told.DONE, number=2, named=Named("a"))
    doubt = deed(Role.TAGGER, Told.REFUSED, number=2)
    assert [*promises(ROUGH, [made], {}, {})] == ["tagger-0 made tag a of snapshot 4, and it names None"]
    assert [*promises(ROUGH, [made], {}, {"a": 5})] == ["tagger-0 made tag a of snapshot 4, and it names 5"]
    assert not [*promises(ROUGH, [made], {}, {"a": 4})]
    assert not [*promises(ROUGH, [made, gone], {}, {})]
    assert not [*promises(ROUGH, [made, doubt], {}, {})]
