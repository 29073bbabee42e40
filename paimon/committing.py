"""What a table's commits may be asked and told: who is called after them, and what became of one that was in doubt.

Law: nothing here makes a published commit a failure, or makes a commit twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Self

from attrs import evolve, frozen

from paimon.domain.errors import CommitOverwritten, CommitUncertain
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import BATCH_COMMIT_IDENTIFIER
from paimon.operations.commit.after.callbacks import with_callbacks
from paimon.operations.commit.after.outcome import CommitFate, fate_of, resolve
from paimon.operations.commit.request import CommitResult
from paimon.ports.callbacks import CommitCallback
from paimon.ports.engine import Engine


@frozen(eq=False, repr=False)
class Committing:
    """The part of `Table` that deals with its commits."""

    engine: Engine
    definition: TableDefinition

    def with_callbacks(self, *callbacks: CommitCallback | Mapping[str, CommitCallback]) -> Self:
        """The same table, whose commits call these callables once they stand (`CommitEvent`), beside those it has.

        Parameters
        ----------
        *callbacks
            Callables, or a mapping of names to them: a table whose option `commit.callbacks` lists names (of Java
            classes) takes commits only where each of them is bound so.

        What a callback raises becomes a RuntimeWarning. It may be called again for a commit that took place before. It
        is called in the process that commits, and does not travel with the table.
        """
        return evolve(self, engine=with_callbacks(self.engine, callbacks))

    def resolve(self, error: CommitUncertain | CommitOverwritten) -> CommitResult:
        """Find out what became of the commit that the error tells of, and make it again unless it stands.

        Raises
        ------
        CommitUncertain
            Still nobody can tell; nothing was changed. Ask again.
        NotFound
            It has to be made again, and its files are gone: write the rows again.
        CommitConflict, InvalidRequest
            It cannot be made again: later commits contradict it.
        """
        return resolve(self.engine, self.definition, error)

    def outcome(
        self,
        commit_user: str,
        identifier: int = BATCH_COMMIT_IDENTIFIER,
        *,
        snapshot: int | None = None,
        identity: str | None = None,
    ) -> CommitFate:
        """What became of a commit of this user, by its identifier or by the snapshot that it was to become.

        `CommitUncertain` tells both; the answer changes nothing.
        """
        return fate_of(self.engine, self.definition, commit_user, identifier, snapshot, identity)
