"""Values in MongoDB's extended JSON, which wraps those that JSON has no type for, such as ``{"$oid": "…"}``.

Source: the specification of MongoDB's extended JSON, version 2, and its older form of binary values.
"""

from __future__ import annotations

import numpy as np

from paimon.domain.cdc.json_index import JsonIndex, Spans

_WRAPPERS = (
    "$oid",
    "$numberLong",
    "$numberInt",
    "$numberDouble",
    "$numberDecimal",
    "$date",
    "$symbol",
    "$uuid",
)
_BINARY, _UNDEFINED = "$binary", "$undefined"


def unwrap_values(index: JsonIndex, spans: Spans) -> Spans:
    """Return values without their wrappers; other values stay, and undefined ones become absent."""
    for _ in range(2):  # a date may contain a wrapped number
        members = index.members(spans)
        if not members.names:
            break
        for name in _WRAPPERS:
            spans = members.find(name).replace_absent(spans)
        binary = members.find(_BINARY)  # an object with base64 text, or in the older form the text
        spans = index.members(binary).find("base64").replace_absent(binary).replace_absent(spans)
        has_value = members.find(_UNDEFINED).starts < 0
        spans = Spans(np.where(has_value, spans.starts, -1), np.where(has_value, spans.ends, -1))
    return spans
