"""Return zeros of FLOAT and DOUBLE columns with the signs that Java's ORC reader returns.

Invariant: Java reads a column in batches of 1024 rows, and takes a batch without nulls whose values are all `==` for
one repeated value. A batch of zeros of both signs therefore reads as the sign of its first value. Only top-level
columns are changed. Source: `TreeReaderFactory.DoubleTreeReader`, `OrcReaderFactory`.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

JAVA_BATCH_ROWS = 1024


def apply_java_zero_signs(stripe: pa.Array) -> pa.Array:
    """Return a FLOAT or DOUBLE column of one whole stripe as Java reads it."""
    starts = np.arange(0, len(stripe), JAVA_BATCH_ROWS)
    held = stripe.fill_null(1) if stripe.null_count else stripe
    values = held.to_numpy(zero_copy_only=True)
    mixed = [batch for batch in starts[values[starts] == 0].tolist() if _has_only_mixed_zeros(values, batch)]
    if not mixed:
        return stripe
    changed = values.copy()
    for batch in mixed:
        changed[batch : batch + JAVA_BATCH_ROWS] = values[batch]
    # The other batches may hold nulls, which keep their positions.
    return pa.array(changed, stripe.type, mask=stripe.is_null().to_numpy(zero_copy_only=False))


def _has_only_mixed_zeros(values: np.ndarray[tuple[int], np.dtype[np.floating]], start: int) -> bool:
    batch = values[start : start + JAVA_BATCH_ROWS]
    return not batch.any() and np.unique(np.signbit(batch)).size > 1
