"""Manifest entries as the columns that planning and conflict checks read, without files."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from paimon.domain.manifest.entries import ManifestEntry
from paimon.domain.manifest.entry_codec import entry_to_record
from paimon.domain.manifest.entry_columns import ENTRY_TYPE, EntryColumns, ManifestRecords, entry_columns
from paimon.domain.manifest.record_columns import ArrayColumns


def to_entry_columns(*manifests: Sequence[ManifestEntry]) -> EntryColumns:
    """Return the entries of manifests, in order."""
    records = pa.array([entry_to_record(e) for m in manifests for e in m], ENTRY_TYPE)
    names = tuple(f"manifest-{i}" for i in range(len(manifests)))
    return entry_columns([ManifestRecords(names, tuple(map(len, manifests)), ArrayColumns(records))])
