"""The placeholder that Debezium writes for a large value that an update in PostgreSQL did not change.

Source: the documentation of Debezium's connector for PostgreSQL on toasted values.
"""

from __future__ import annotations

import base64

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from paimon.domain.cdc.json_index import ARRAY, OBJECT, STRING, JsonIndex, Spans
from paimon.domain.types import data_types as dt
from paimon.domain.types.data_types import DataType

UNAVAILABLE = "__debezium_unavailable_value"
_BYTES = UNAVAILABLE.encode()
_SCALARS = pa.array([UNAVAILABLE, base64.b64encode(_BYTES).decode()])
_NUMBERS = f"[{','.join(map(str, _BYTES))}]"


def find_unavailable(index: JsonIndex, spans: Spans, target: DataType) -> npt.NDArray[np.bool_]:
    """Mark the values that are the placeholder, in the form that it has for the type of a column.

    That is a text or base64 text, or an array or object that contains the placeholder alone.
    """
    if isinstance(target, (*dt.CHARACTER_TYPES, *dt.BYTES_TYPES)):
        known = _SCALARS[:1] if isinstance(target, dt.CHARACTER_TYPES) else _SCALARS
        return np.asarray(pc.is_in(index.texts(index.keep(spans, STRING)), known))
    if not isinstance(target, (dt.ArrayType, dt.MapType)):
        return np.zeros(len(spans), bool)
    texts = pc.replace_substring_regex(index.texts(index.keep(spans, ARRAY, OBJECT)), r"\s", "")
    single = pc.match_substring_regex(texts, rf'^[\[{{]"{UNAVAILABLE}"(:"{UNAVAILABLE}")?[\]}}]$')
    return np.asarray(pc.fill_null(pc.or_(single, pc.equal(texts, _NUMBERS)), False))
