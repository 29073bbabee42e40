"""Judging a history by what is left of it, and by what its actors were told and saw.

Law: what was acknowledged is there, once and for all; what was refused is not; what is uncertain is there whole or not
at all. Every state and tag that stands can be read. Whoever reads sees a prefix of one history: all that was
acknowledged before, nothing less than what anybody saw before. What lies on the storage is named by something that
stands, or found by the cleaner. A snapshot whose id was used before, and freed by expiry, is no state: its writer takes
it back, or the cleaner does where the writer died. The storage tells which these are.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from attrs import frozen

from paimon.domain.errors import PaimonError
from paimon.table import Table
from paimon.testing.world.acting.deeds import Deed, Seen, Told
from paimon.testing.world.acting.rows import reached
from paimon.testing.world.acting.upkeep import seen_by
from paimon.testing.world.judging.promises import promises
from paimon.testing.world.judging.reach import needed_and_named, unnamed
from paimon.testing.world.plan import NIGHT_MILLIS, WRITERS, Plan
from paimon.testing.world.storage import TimedFiles


def wrongs(
    plan: Plan,
    open_table: Callable[[], Table],
    deeds: Sequence[Deed],
    storage: TimedFiles,
    later: Callable[[int], None],
) -> list[str]:
    """Everything that is not as it must be, when everybody is done.

    Parameters
    ----------
    open_table : callable
        The table, for one to whom nothing happens.
    storage : TimedFiles
        Where the table lies.
    later : callable
        Lets so many milliseconds pass.
    """
    judge = _Judge(plan, deeds, storage)
    try:
        table = open_table()
        found = [*judge.states(table), *judge.history()]
        later(NIGHT_MILLIS)
        return [*found, *judge.remains(table)]
    except PaimonError as error:
        return [f"the table cannot be read any more: {type(error).__name__}: {error}"]


@frozen
class _Sight:
    """A state that somebody saw: of which snapshot, how far each writer's commits go, and when it was looked for."""

    who: str
    snapshot: int
    reached: Mapping[int, int]
    began: int
    ended: int
    is_newest: bool


class _Judge:
    def __init__(self, plan: Plan, deeds: Sequence[Deed], storage: TimedFiles) -> None:
        self._plan = plan
        self._deeds = deeds
        self._storage = storage
        self._contents: Mapping[str, bytes] = storage.contents
        self._writers = [n for n, role in enumerate(plan.roles) if role in WRITERS]
        self._sights: list[_Sight] = []

    def states(self, table: Table) -> Iterator[str]:
        """Each snapshot, tag and sight of a reader is a state that the writers' commits made; promises are kept."""
        paths, astray = table.definition.paths, self._storage.put_again
        standing = [s for s in table.snapshots() if paths.snapshot(s.id) not in astray]
        end = max((d.ended for d in self._deeds), default=0) + 1
        for snapshot in standing:
            seen = seen_by(table.scan(["id", "version"], snapshot=snapshot.id))
            yield from self._look(f"snapshot {snapshot.id}", seen, end, end, snapshot is standing[-1])
        for name, tag in table.tags.items():
            seen = seen_by(table.scan(["id", "version"], tag=name))
            yield from self._look(f"tag {name}", seen, end, end, False)
            if seen.snapshot != tag.snapshot.id:
                yield f"tag {name} names snapshot {tag.snapshot.id}, and a scan reads {seen.snapshot}"
        for deed in self._deeds:
            if deed.seen is not None:
                yield from self._look(deed.actor, deed.seen, deed.began, deed.ended, deed.seen.tag is None)
        if not standing:
            self._sights.append(_Sight("the end", 0, dict.fromkeys(self._writers, 0), end, end, True))
        commits = Counter((s.commit_user, s.commit_identifier, s.commit_kind.value) for s in standing)
        yield from promises(self._plan, self._deeds, commits, {n: t.snapshot.id for n, t in table.tags.items()})

    def history(self) -> Iterator[str]:
        """All sights are of one history, and none lacks what was acknowledged or seen before it began."""
        by_snapshot = sorted(self._sights, key=lambda sight: sight.snapshot)
        for earlier, sight in pairwise(by_snapshot):
            back = [w for w in self._writers if sight.reached[w] < earlier.reached[w]]
            if back or (sight.snapshot == earlier.snapshot and sight.reached != earlier.reached):
                yield (
                    f"snapshot {sight.snapshot} ({sight.who}) goes back behind {earlier.snapshot} ({earlier.who}): "
                    f"{dict(sight.reached)}, {dict(earlier.reached)}"
                )
        newest = [sight for sight in self._sights if sight.is_newest]
        for sight in newest:
            yield from self._lacks(sight)
            for before in newest:
                if before.ended < sight.began and before.snapshot > sight.snapshot:
                    yield f"{sight.who} saw snapshot {sight.snapshot} after {before.who} had seen {before.snapshot}"

    def _lacks(self, sight: _Sight) -> Iterator[str]:
        for deed in self._deeds:
            if deed.role not in WRITERS or deed.told is not Told.DONE or deed.ended >= sight.began:
                continue
            writer = int(deed.actor.rpartition("-")[2])
            if sight.reached[writer] < deed.number:
                yield (
                    f"{deed.actor} was told that {deed.number} is done, and {sight.who}, who looked later, saw "
                    f"{sight.reached[writer]}"
                )

    def remains(self, table: Table) -> Iterator[str]:
        """After the cleaner nothing is left that nothing names, nothing is gone that somebody needs, all is whole."""
        before = set(self._contents)
        gone = set(table.maintain.remove_orphans(dry_run=False)["path"].to_pylist())
        if before - set(self._contents) != gone:
            yield f"the cleaner says that it removed {sorted(gone)}, and it did {sorted(before - set(self._contents))}"
        strays = [path for path in self._storage.put_again if "/snapshot/snapshot-" in path and path in self._contents]
        if strays:
            yield f"the cleaner leaves {sorted(strays)}, whose ids were used before"
        report = table.maintain.check(deep=True)
        yield from (f"check: {fault}" for fault in report.faults if not fault.kind.is_harmless)
        needed, named = needed_and_named(table)
        there = {path.rpartition("/")[2] for path in self._contents}
        if not needed <= there:
            yield f"after the cleaner these files are missing: {sorted(needed - there)}"
        left = unnamed(table, self._contents, named)
        if left:
            yield f"after the cleaner nothing names {left}"

    def _look(self, who: str, seen: Seen, began: int, ended: int, is_newest: bool) -> Iterator[str]:
        if not seen.snapshot:
            found, wrong = dict.fromkeys(self._writers, 0), "rows without a snapshot" if seen.rows else ""
        else:
            found, wrong = reached(seen.rows, self._writers, self._plan.loaded)
        if seen.doubled:
            wrong = f"holds {seen.doubled} rows more than keys"
        if wrong:
            yield f"{who} (of snapshot {seen.snapshot}) {wrong}"
        else:
            self._sights.append(_Sight(who, seen.snapshot, found, began, ended, is_newest))
