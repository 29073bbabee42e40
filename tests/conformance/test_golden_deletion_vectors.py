"""Deletion vector files of Java are decoded and encoded again to the same bytes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from support.golden_tables import golden_directory

import paimon
from paimon.domain.deletion.vector import MAGIC_64, DeletionVector, decode_vector, encode_index_file
from paimon.domain.manifest.entries import DELETION_VECTORS, IndexManifestEntry
from paimon.operations.metadata.manifests import index_path, read_index_manifest
from paimon.table import Table

CASES = sorted({p.parents[2].name for p in golden_directory().glob("*/table/manifest/index-manifest-*")})


def vector_entries(case: str) -> Iterator[tuple[Table, IndexManifestEntry]]:
    table = paimon.open_table(str(golden_directory() / case / "table"))
    assert isinstance(table, Table)
    for manifest in sorted((golden_directory() / case / "table" / "manifest").glob("index-manifest-*")):
        for entry in read_index_manifest(table.context, manifest.name):
            if entry.index_type == DELETION_VECTORS:
                yield table, entry


def test_there_are_many_index_files() -> None:
    assert sum(1 for case in CASES for _ in vector_entries(case)) > 50


@pytest.mark.parametrize("case", CASES)
def test_encoding_what_was_decoded_gives_the_same_bytes(case: str) -> None:
    for table, entry in vector_entries(case):
        data = Path(index_path(table.definition, entry, "index manifest")).read_bytes()
        ranges = entry.deletion_vectors or ()
        vectors = [(r.data_file, decode_vector(data[r.offset :], r.length, entry.file_name)) for r in ranges]
        bitmap64 = any(data[r.offset + 4 : r.offset + 8] == MAGIC_64 for r in ranges)
        content = encode_index_file(vectors, bitmap64)
        assert content.data == data
        assert [(p.data_file, p.offset, p.length) for p in content.places] == [
            (r.data_file, r.offset, r.length) for r in ranges
        ]
        assert all(r.cardinality in (None, p.cardinality) for p, r in zip(content.places, ranges, strict=True))
        fresh = [(name, DeletionVector.of(vector.positions)) for name, vector in vectors]
        assert encode_index_file(fresh, bitmap64) == content
