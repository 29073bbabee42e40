"""Check that each key of a cross-partition table has a live row in one partition and bucket only.

Invariant: the rows are those of the merge, so a key that moved to another partition is found in the new one only. The
check reads the keys of a state twice, first to fill a key store and then to compare: memory holds some batches, and
the store is on local disk.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import numpy as np
import pyarrow as pa

from paimon.domain.errors import PaimonError
from paimon.domain.maintenance.fault import Fault, FaultKind
from paimon.domain.scan.bucket_paths import BucketPaths
from paimon.domain.schema.bucket_mode import BucketMode
from paimon.operations.buckets.key_bootstrap import open_key_store, plan_key_splits, read_key_places
from paimon.operations.fsck.states import Findings, State, to_fault
from paimon.ports.key_stores import KeyStore, Places


class KeyCheck:
    """Check the keys of one state, and add faults to `findings`."""

    def __init__(self, findings: Findings, state: State) -> None:
        self._context = state.context
        self._findings = findings
        self._state = state
        self._numbers: dict[tuple[bytes, int], int] = {}

    def run(self) -> None:
        """Report each bucket with keys that another bucket has, too.

        A time to live of the key index allows such keys, so tables with it are not checked.
        """
        options = self._context.options
        if (
            self._context.table.bucket_mode is not BucketMode.CROSS_PARTITION
            or options.cross_partition_index_ttl_millis is not None
        ):
            return
        try:
            with closing(open_key_store(self._context)) as store:
                store.load(self._read_keys(), self._context.engine.clock.now_millis())
                self._compare(store)
        except PaimonError as error:
            fault = to_fault(error, self._state.path, [self._state.name])
            if all(fault.path != known.path for known in self._findings.faults):  # the check of files reports it, too
                self._findings.faults.append(fault)

    def _compare(self, store: KeyStore) -> None:
        """Report the keys for which the store has another place than their row."""
        shared: dict[int, tuple[int, int]] = {}
        for keys, places in self._read_keys():
            found = store.find(keys)
            others = found[found != places]
            if len(others):
                count, other = shared.get(int(places[0]), (0, int(others[0])))
                shared[int(places[0])] = (count + len(others), other)
        paths, buckets = BucketPaths.of(self._context.table), list(self._numbers)
        for place, (count, other) in shared.items():
            reason = (
                f"has {count} rows whose key is live in other buckets, too, such as {paths.directory(*buckets[other])}"
            )
            fault = Fault(FaultKind.PLACE, paths.directory(*buckets[place]), reason, [self._state.name])
            self._findings.faults.append(fault)

    def _read_keys(self) -> Iterator[tuple[pa.RecordBatch, Places]]:
        """Yield the keys of all buckets, and the number of their bucket for each."""
        for partition, bucket, keys in read_key_places(
            self._context, plan_key_splits(self._context, self._state.snapshot)
        ):
            number = self._numbers.setdefault((partition, bucket), len(self._numbers))
            yield keys, np.full(keys.num_rows, number, np.int64)
