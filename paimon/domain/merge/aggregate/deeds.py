"""What one record does to the value of an aggregated column.

Law: every merge engine that aggregates says, for each record and column, one of these deeds; a function needs to know
nothing else of the engine. Source: `FieldAggregator`, and who calls it.
"""

from __future__ import annotations

SKIP = 0
"""Nothing."""
ADD = 1
"""`agg`: the record comes in its order."""
ADD_OLDER = 2
"""`aggReversed`: the record is older than what its sequence group holds."""
RETRACT = 3
"""`retract`: the record takes its value back."""
SET = 4
"""The value is taken as it is: no function sees it."""
CLEAR = 5
"""The value becomes null."""
