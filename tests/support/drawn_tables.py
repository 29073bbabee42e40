"""Draw tables, rows and changes whose files a query engine may read itself, or may not."""

from __future__ import annotations

import datetime
import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

from hypothesis import strategies as st

from paimon.table import Table

COLUMNS = {
    "id": "BIGINT NOT NULL",
    "part": "STRING NOT NULL",
    "flag": "BOOLEAN",
    "tiny": "TINYINT",
    "small": "SMALLINT",
    "number": "INT",
    "money": "DECIMAL(9, 2)",
    "amount": "DECIMAL(18, 3)",
    "total": "DECIMAL(38, 5)",
    "word": "STRING",
    "code": "CHAR(3)",
    "label": "VARCHAR(5)",
    "raw": "BYTES",
    "day": "DATE",
    "at": "TIMESTAMP(6)",
    "zoned": "TIMESTAMP_LTZ(6)",
    "ratio": "FLOAT",
    "size": "DOUBLE",
}
NOT_SHARED = {"at_millis": "TIMESTAMP(3)", "at_nanos": "TIMESTAMP(9)", "clock": "TIME", "items": "ARRAY<INT>"}
NOT_SHARED_VALUES: dict[str, list[Any]] = {
    "at_millis": [None, datetime.datetime(1960, 1, 1, 0, 0, 0, 1000)],
    "at_nanos": [None, datetime.datetime(2026, 1, 1)],
    "clock": [None, datetime.time(1, 2, 3)],
    "items": [None, [], [1, None]],
}
FLOATS = [None, 0.0, -0.0, 1.5, -2.5, math.nan, math.inf, -math.inf]
VALUES: dict[str, list[Any]] = {
    "flag": [None, True, False],
    "tiny": [None, -128, 0, 127],
    "small": [None, -32768, 5],
    "number": [None, -(2**31), 0, 2**31 - 1],
    "money": [None, Decimal("-1.05"), Decimal("9999999.99")],
    "amount": [None, Decimal("0.001"), Decimal("-123456789012345.678")],
    "total": [None, Decimal("1e32"), Decimal("-0.00001")],
    "word": [None, "", "a", "A", "ä", "it's", "long " * 20],
    "code": [None, "a", "abc"],
    "label": [None, "", "x", "🙂"],
    "raw": [None, b"", b"\x00\xff", b"a"],
    "day": [None, datetime.date(1969, 12, 31), datetime.date(2026, 1, 1)],
    "at": [None, datetime.datetime(1960, 1, 1, 0, 0, 0, 1), datetime.datetime(2026, 1, 1)],
    "zoned": [None, datetime.datetime(1960, 1, 1, 0, 0, 0, 1), datetime.datetime(2026, 1, 1)],
    "ratio": FLOATS,
    "size": FLOATS,
}


@st.composite
def batches(draw: st.DrawFn) -> list[dict[str, Any]]:
    count = draw(st.integers(1, 12))
    row = st.fixed_dictionaries(
        {"id": st.integers(0, 8), "part": st.sampled_from(["p", "q", ""])}
        | {name: st.sampled_from(values) for name, values in (VALUES | NOT_SHARED_VALUES).items()}
    )
    return draw(st.lists(row, min_size=count, max_size=count))


@st.composite
def tables(draw: st.DrawFn) -> dict[str, Any]:
    keyed, partitioned = draw(st.booleans()), draw(st.booleans())
    options: dict[str, object] = {"bucket": 1, "bucket-key": "id"}
    if draw(st.booleans()):
        options |= {"deletion-vectors.enabled": True}
    if keyed and draw(st.booleans()):
        options["sequence.field"] = draw(st.sampled_from(["number", "ratio", "day"]))
    options["file.compression"] = draw(st.sampled_from(["zstd", "snappy", "none", "lz4"]))
    options["file.format"] = draw(st.sampled_from(["parquet", "parquet", "parquet", "orc"]))
    return {
        "primary_keys": (["id", "part"] if partitioned else ["id"]) if keyed else [],
        "partition_keys": ["part"] if partitioned else [],
        "options": options,
    }


CHANGES: list[Callable[[Table], object]] = [
    lambda t: t.delete(where="id = 3"),
    lambda t: t.compact(full=True),
    lambda t: t.alter("ALTER COLUMN tiny TYPE INT"),
    lambda t: t.alter("RENAME COLUMN label TO tag") if "label" in t.schema.names else t,
    lambda t: t if "extra" in t.schema.names else t.alter("ADD COLUMN extra INT"),
    lambda t: t,
]
