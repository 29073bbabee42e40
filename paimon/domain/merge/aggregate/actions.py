"""The actions of a record on an aggregated column.

Invariant: every merge engine that aggregates assigns one of these actions to each record and column. A function needs
no other knowledge of the engine.

Source: `FieldAggregator` and its callers.
"""

from __future__ import annotations

SKIP = 0
"""The record does not change the value."""
ADD = 1
"""`agg`: the record is newer than the value."""
ADD_OLDER = 2
"""`aggReversed`: the record is older than what its sequence group holds."""
RETRACT = 3
"""`retract`: the record takes its value back."""
SET = 4
"""The value of the record replaces the value; no function is called."""
CLEAR = 5
"""The value becomes null."""
