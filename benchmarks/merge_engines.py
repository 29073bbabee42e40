"""Options of the measured merge engines, and the rows that are written to each."""

from __future__ import annotations

import data
import pyarrow as pa

_FUNCTIONS = {
    "quantity": "sum",
    "price": "sum",
    "total": "max",
    "name": "last_value",
    "city": "last_non_null_value",
    "note": "last_non_null_value",
    "moment": "max",
    "day": "min",
    "flag": "bool_or",
}

ENGINES: dict[str, dict[str, str]] = {
    "deduplicate": {},
    "aggregation": {
        "merge-engine": "aggregation",
        **{f"fields.{column}.aggregate-function": function for column, function in _FUNCTIONS.items()},
    },
    "partial-update": {"merge-engine": "partial-update"},
    "sequence-groups": {
        "merge-engine": "partial-update",
        "fields.moment.sequence-group": "quantity,price,total",
        "fields.day.sequence-group": "name,city,note,flag",
    },
}

ROWS = {"deduplicate": "int", "aggregation": "int", "partial-update": "half", "sequence-groups": "half"}
"""Kind of rows for each engine: ``int``, ``string`` (type of the key) or ``half`` (every other value is null)."""


def draw_rows(kind: str, number: int) -> pa.Table:
    """Draw the rows of one commit, by their kind and the number of the commit."""
    return data.draw_rows(number, key="string" if kind == "string" else "int", nulls=0.5 if kind == "half" else 0)
