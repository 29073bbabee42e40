"""The actors of the simulation: each repeats the step of its role, may die at any operation, and is started again.

Invariant: an actor relies only on the outcomes that it got. A writer repeats a commit with the same commit identifier
until the outcome is `DONE`. After a restart it continues behind its last `DONE`, as a job does from its checkpoint.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Protocol

import pyarrow as pa
from attrs import define, field

from paimon.builders.table_write import TableWrite
from paimon.builders.write_builder import StreamWriteBuilder
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CommitNotVisible, CommitUncertain, PaimonError
from paimon.table import Table
from paimon.testing.faulty_files import ProcessDied
from paimon.testing.simulation.actions import Action, Outcome, WorkResult
from paimon.testing.simulation.actor_steps import STEP_OF_ROLE, describe_commit
from paimon.testing.simulation.shared_keys import build_shared_rows
from paimon.testing.simulation.simulated_rows import build_commit_rows
from paimon.testing.simulation.simulation_plan import REPLACERS, WRITERS, Role, TableKind

_MAX_STARTS = 4
"""How often an actor is started, the first time included."""
_MAX_ATTEMPTS = 5
"""How often a writer tries the same commit before it gives up."""


class ActorEnvironment(Protocol):
    """What the simulation gives to its actors; `begin_step` and `end_step` enclose each step."""

    def open_table(self, actor: str) -> Table:
        """Open the table as a new process would, with empty caches."""
        ...

    def replace_table(self, actor: str, role: Role) -> WorkResult:
        """Drop, rename or create the table, as this role does."""
        ...

    def begin_step(self, actor: str) -> int:
        """Start a step and return its logical time."""
        ...

    def end_step(self, actor: str) -> None:
        """End the step of an actor."""
        ...

    def next_time(self) -> int:
        """Return a logical time that is greater than all earlier ones."""
        ...

    def record_action(self, action: Action) -> None:
        """Add an action to the history."""
        ...


@define(eq=False)
class Actor:
    """One simulated process; `last_done` survives its deaths: the number of its last work with outcome `DONE`."""

    name: str
    number: int
    role: Role
    step_count: int
    environment: ActorEnvironment = field(repr=False)
    random: Random = field(repr=False)
    table_kind: TableKind = TableKind.FIXED
    last_done: int = 0

    def build_rows(self, number: int) -> pa.Table:
        """Return the rows of the commit of this number, with row kinds in the column `kind`."""
        if self.table_kind in (TableKind.FIXED, TableKind.REPLACED):
            return build_commit_rows(self.number, number)
        return build_shared_rows(self.number, number, self.role, self.table_kind)

    def run(self) -> None:
        """Take all steps, and start again after a death."""
        for _ in range(_MAX_STARTS):
            try:
                _run_stream_writer(self) if self.role is Role.STREAMER else self._run_steps()
                return
            except ProcessDied:
                continue

    def _run_steps(self) -> None:
        attempts = 0
        while self.last_done < self.step_count and attempts < _MAX_ATTEMPTS:
            outcome = self._run_step(self.last_done + 1)
            if outcome is Outcome.DONE or self.role not in (*WRITERS, *REPLACERS):
                self.last_done, attempts = self.last_done + 1, 0
            else:
                attempts += 1

    def _run_step(self, number: int) -> Outcome:
        with self.record_step([number]) as recorder:
            if self.role in REPLACERS:
                recorder.record_done(number, self.environment.replace_table(self.name, self.role))
                return recorder.last_outcome
            table = self.environment.open_table(self.name)
            recorder.record_done(number, STEP_OF_ROLE[self.role](table, self, number))
        return recorder.last_outcome

    @contextmanager
    def record_step(self, numbers: Sequence[int]) -> Iterator[StepRecorder]:
        """Record one step with these works; an error is the outcome of the first work that is not done by then.

        Raises
        ------
        ProcessDied
            The simulated process died in this step.
        """
        recorder = StepRecorder(self, list(numbers), self.environment.begin_step(self.name))
        try:
            yield recorder
        except (CommitUncertain, CommitNotVisible) as error:  # the rows are committed, or may be
            recorder.record_failure(Outcome.UNCERTAIN, str(error))
        except PaimonError as error:
            recorder.record_failure(Outcome.REFUSED, f"{type(error).__name__}: {error}")
        except ProcessDied:
            recorder.record_failure(Outcome.DIED, "")
            raise
        finally:
            if not recorder.is_continued:
                self.environment.end_step(self.name)


@define(eq=False)
class StepRecorder:
    """Records the outcomes of the works of one step; `open_numbers` are the works without an outcome.

    A step that `is_continued` has prepared files that are not committed; the next step commits them.
    """

    actor: Actor
    open_numbers: list[int]
    start_time: int
    last_outcome: Outcome = Outcome.DONE
    is_continued: bool = False

    def record_done(self, number: int, result: WorkResult) -> None:
        """Record the outcome `DONE` of a work."""
        self.open_numbers.remove(number)
        self._record(number, Outcome.DONE, result)

    def record_failure(self, outcome: Outcome, description: str) -> None:
        """Record a failure of the first work without an outcome; the works after it were not started."""
        self.last_outcome = outcome
        for number in self.open_numbers[:1]:
            self._record(number, outcome, WorkResult(description))
        self.open_numbers.clear()

    def _record(self, number: int, outcome: Outcome, result: WorkResult) -> None:
        actor = self.actor
        end_time = actor.environment.next_time()
        actor.environment.record_action(
            Action(
                actor.name,
                actor.role,
                number,
                outcome,
                self.start_time,
                end_time,
                result.description,
                result.observation,
                result.tag_change,
            )
        )


def _run_stream_writer(actor: Actor) -> None:
    """Run a job that keeps its writer for many commits, and sometimes prepares two commits before it commits one."""
    failures = 0
    while actor.last_done < actor.step_count and failures < _MAX_ATTEMPTS:
        failures += not _run_stream_job(actor)


def _run_stream_job(actor: Actor) -> bool:
    """Run the job once, with one open table, and return False if it failed."""
    builder: StreamWriteBuilder | None = None
    writer: TableWrite | None = None
    pending: list[tuple[int, list[CommitMessage]]] = []
    number = actor.last_done
    try:
        while actor.last_done < actor.step_count:
            new_numbers = [number + 1] if number < actor.step_count else []
            with actor.record_step([*(n for n, _ in pending), *new_numbers]) as recorder:
                builder = builder or actor.environment.open_table(actor.name).new_stream_write_builder(actor.name)
                writer = writer or builder.new_write()
                for number in new_numbers:
                    writer.write(actor.build_rows(number), "kind")
                    pending.append((number, writer.prepare_commit(number)))
                if number < actor.step_count and len(pending) < 2 and actor.random.random() < 0.3:
                    recorder.is_continued = True
                    continue
                for commit_identifier, messages in pending:
                    result = builder.new_commit().commit(commit_identifier, messages)
                    actor.last_done = commit_identifier
                    done = WorkResult(describe_commit(result.snapshot_ids, result.lost_compaction))
                    recorder.record_done(commit_identifier, done)
                pending.clear()
            if recorder.last_outcome is not Outcome.DONE:
                return False
        return True
    finally:
        actor.environment.end_step(actor.name)
        _close_writer(writer)


def _close_writer(writer: TableWrite | None) -> None:
    if writer is not None:
        try:
            writer.close()
        except PaimonError:
            return  # the files that it leaves are orphans, which the cleaner removes
