"""The processes of the simulated world: each does its work turn by turn, may die, and comes back.

Law: an actor believes only what it was told. A writer does a commit again, under the same identifier, until it is told
that it is done, and after a death goes on from what it was told last, as a job does from its checkpoint.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol

from attrs import define, field

from paimon.builders import StreamWriteBuilder, TableWrite
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CommitNotVisible, CommitUncertain, PaimonError
from paimon.table import Table
from paimon.testing.faulty_files import ProcessDied
from paimon.testing.world.acting.deeds import Deed, Done, Told
from paimon.testing.world.acting.rows import commit_rows
from paimon.testing.world.acting.upkeep import WORK
from paimon.testing.world.plan import WRITERS, Role

_LIVES = 4
"""How often a process that died comes back."""
_TRIES = 5
"""How often a writer asks for the same commit before it gives up."""


class Stage(Protocol):
    """What the world gives its actors; `begin` and `end` enclose a turn, and each moment is later than the last."""

    def open(self, actor: str) -> Table: ...
    def begin(self, actor: str) -> int: ...
    def end(self, actor: str) -> None: ...
    def moment(self) -> int: ...
    def note(self, deed: Deed) -> None: ...


@define(eq=False)
class Actor:
    """One process; `done` is what it knows across its deaths: the number of its last work that was told done."""

    name: str
    number: int
    role: Role
    turns: int
    stage: Stage = field(repr=False)
    chance: random.Random = field(repr=False)
    done: int = 0

    def live(self) -> None:
        """All of its lives."""
        for _ in range(_LIVES):
            try:
                _stream(self) if self.role is Role.STREAMER else self._run()
                return
            except ProcessDied:
                continue

    def _run(self) -> None:
        tries = 0
        while self.done < self.turns and tries < _TRIES:
            told = self._turn(self.done + 1)
            if told is Told.DONE or self.role not in WRITERS:
                self.done, tries = self.done + 1, 0
            else:
                tries += 1

    def _turn(self, number: int) -> Told:
        with self.telling([number]) as told:
            table = self.stage.open(self.name)
            told.done(number, WORK[self.role](table, self, number))
        return told.last

    @contextmanager
    def telling(self, numbers: Sequence[int]) -> Iterator[Telling]:
        """One turn, for these works; what goes wrong is told of those that are not done by then."""
        telling = Telling(self, list(numbers), self.stage.begin(self.name))
        try:
            yield telling
        except (CommitUncertain, CommitNotVisible) as error:  # the rows are there, or may be
            telling.rest(Told.UNCERTAIN, str(error))
        except PaimonError as error:
            telling.rest(Told.REFUSED, f"{type(error).__name__}: {error}")
        except ProcessDied:
            telling.rest(Told.DIED, "")
            raise
        finally:
            if not telling.goes_on:
                self.stage.end(self.name)


@define(eq=False)
class Telling:
    """What is told of the works of a turn: `left` are those of which nothing was.

    A turn that `goes_on` has files that are not committed yet; the next one takes it up.
    """

    actor: Actor
    left: list[int]
    began: int
    last: Told = Told.DONE
    goes_on: bool = False

    def done(self, number: int, done: Done) -> None:
        """This work is done."""
        self.left.remove(number)
        self._note(number, Told.DONE, done)

    def rest(self, told: Told, text: str) -> None:
        """Something went wrong: with the first work that is left; the others were not begun."""
        self.last = told
        for number in self.left[:1]:
            self._note(number, told, Done(text))
        self.left.clear()

    def _note(self, number: int, told: Told, done: Done) -> None:
        actor = self.actor
        ended = actor.stage.moment()
        actor.stage.note(
            Deed(actor.name, actor.role, number, told, self.began, ended, done.text, done.seen, done.named)
        )


def _stream(actor: Actor) -> None:
    """A job that keeps its writer over many commits, and now and then prepares one before the last is committed."""
    failures = 0
    while actor.done < actor.turns and failures < _TRIES:
        failures += not _streamed(actor)


def _streamed(actor: Actor) -> bool:
    """One run of the job, with one handle on the table; False where it failed."""
    builder: StreamWriteBuilder | None = None
    writer: TableWrite | None = None
    pending: list[tuple[int, list[CommitMessage]]] = []
    number = actor.done
    try:
        while actor.done < actor.turns:
            fresh = [number + 1] if number < actor.turns else []
            with actor.telling([*(n for n, _ in pending), *fresh]) as told:
                builder = builder or actor.stage.open(actor.name).new_stream_write_builder(actor.name)
                writer = writer or builder.new_write()
                for number in fresh:
                    writer.write(commit_rows(actor.number, number), "kind")
                    pending.append((number, writer.prepare_commit(number)))
                if number < actor.turns and len(pending) < 2 and actor.chance.random() < 0.3:
                    told.goes_on = True
                    continue
                for identifier, messages in pending:
                    made = builder.new_commit().commit(identifier, messages)
                    actor.done = identifier
                    told.done(identifier, Done(f"snapshots {made.snapshot_ids}"))
                pending.clear()
            if told.last is not Told.DONE:
                return False
        return True
    finally:
        actor.stage.end(actor.name)
        _closed(writer)


def _closed(writer: TableWrite | None) -> None:
    if writer is not None:
        try:
            writer.close()
        except PaimonError:
            return  # what it leaves is found by the cleaner


