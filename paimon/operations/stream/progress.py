"""Record the progress of a stream scan in its consumer file.

Invariant: the recorded snapshot is the first one whose changes are not processed. A crash repeats changes and never
skips any. A second consumer, named after the first, protects a state that is still needed: the state that is read
first, or the one that an overwrite replaced. Source: `ConsumerManager`, `DataTableStreamScan`.
"""

from __future__ import annotations

from paimon.domain.paths import STATE_SUFFIX, check_segment
from paimon.operations.metadata.consumers import read_consumer
from paimon.operations.refs.consumers import forget_consumer, record_consumer
from paimon.operations.table_context import TableContext

_REFRESH_MILLIS = 60_000
"""How often a waiting consumer writes its file, so that the consumer does not expire."""


class Progress:
    """The recorded progress of one consumer; without a name nothing is recorded.

    With `holds_before`, the state before the next snapshot is protected, too.
    """

    def __init__(self, context: TableContext, name: str | None, holds_before: bool) -> None:
        if name is not None:
            check_segment(name, "consumer name")
        self._context = context
        self._name = name
        self._protects_before = holds_before
        expiration = context.options.consumer_expiration_millis
        self._refresh_millis = _REFRESH_MILLIS if expiration is None else min(_REFRESH_MILLIS, expiration // 4)
        self._recorded: int | None = None
        self._written_at = 0
        self._is_state_protected = True
        self._state_id: int | None = None

    def resume(self) -> int | None:
        """Return the next snapshot of the consumer; None if the consumer is new."""
        self._recorded = None if self._name is None else read_consumer(self._context, self._name)
        return self._recorded

    def protect_state(self, state_id: int) -> None:
        """Protect a state from expiry until the first call of `record`."""
        if self._name is not None:
            record_consumer(self._context, self._name + STATE_SUFFIX, state_id)
            self._state_id, self._written_at = state_id, self._context.engine.clock.now_millis()

    def record(self, next_id: int) -> None:
        """Record that all changes before this snapshot are processed."""
        if self._name is None or (next_id == self._recorded and self._is_fresh()):
            return
        now = self._context.engine.clock.now_millis()
        record_consumer(self._context, self._name, next_id)
        if self._protects_before and next_id > 1:
            record_consumer(self._context, self._name + STATE_SUFFIX, next_id - 1)
        elif self._is_state_protected:
            forget_consumer(self._context, self._name + STATE_SUFFIX)
        self._recorded, self._written_at, self._is_state_protected = next_id, now, False

    def refresh(self) -> None:
        """Write the consumer file again if it is old, so that the consumer does not expire while it waits."""
        if self._recorded is not None:
            self.record(self._recorded)
        elif self._state_id is not None and not self._is_fresh():
            self.protect_state(self._state_id)

    def _is_fresh(self) -> bool:
        return 0 <= self._context.engine.clock.now_millis() - self._written_at < self._refresh_millis
