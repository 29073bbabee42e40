"""How far a follower has come, as its consumer's file says it.

Law: what is recorded is the first snapshot whose changes the follower has not done with; so a crash repeats changes
and never leaves some out. A state that must stay besides (the one read first, or the one that an overwrite replaced)
is held by a second consumer, named after the first. Source: `ConsumerManager`, `DataTableStreamScan`.
"""

from __future__ import annotations

from paimon.domain.paths import segment
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.maintain.refs.consumers import STATE_HOLDER, consumer, forget_consumer, record_consumer
from paimon.ports.engine import Engine

_REFRESH_MILLIS = 60_000
"""A consumer that waits writes its file anew so often, or it would be taken for one that stopped."""


class Progress:
    """The record of one consumer: a state machine over its file; without a name nothing is recorded.

    Parameters
    ----------
    name : str, optional
        The consumer.
    holds_before : bool
        The state before the next snapshot stays, too.
    """

    def __init__(self, engine: Engine, table: TableDefinition, name: str | None, holds_before: bool) -> None:
        if name is not None:
            segment(name, "consumer name")
        self._engine = engine
        self._paths = table.paths
        self._name = name
        self._holds_before = holds_before
        expiration = table.options.consumer_expiration_millis
        self._refresh_millis = _REFRESH_MILLIS if expiration is None else min(_REFRESH_MILLIS, expiration // 4)
        self._recorded: int | None = None
        self._written_at = 0
        self._holds = True
        self._state_id: int | None = None

    def resumed(self) -> int | None:
        """The snapshot that the consumer reads next; None where it is new."""
        self._recorded = None if self._name is None else consumer(self._engine, self._paths, self._name)
        return self._recorded

    def hold(self, state_id: int) -> None:
        """Keep a state from expiring until `record` is first called."""
        if self._name is not None:
            record_consumer(self._engine, self._paths, self._name + STATE_HOLDER, state_id)
            self._state_id, self._written_at = state_id, self._engine.clock.now_millis()

    def record(self, next_id: int) -> None:
        """All before this snapshot is done with."""
        if self._name is None or (next_id == self._recorded and self._is_fresh()):
            return
        now = self._engine.clock.now_millis()
        record_consumer(self._engine, self._paths, self._name, next_id)
        if self._holds_before and next_id > 1:
            record_consumer(self._engine, self._paths, self._name + STATE_HOLDER, next_id - 1)
        elif self._holds:
            forget_consumer(self._engine, self._paths, self._name + STATE_HOLDER)
        self._recorded, self._written_at, self._holds = next_id, now, False

    def refresh(self) -> None:
        """Nothing new is done with, but the consumer is still there."""
        if self._recorded is not None:
            self.record(self._recorded)
        elif self._state_id is not None and not self._is_fresh():
            self.hold(self._state_id)

    def _is_fresh(self) -> bool:
        return 0 <= self._engine.clock.now_millis() - self._written_at < self._refresh_millis
