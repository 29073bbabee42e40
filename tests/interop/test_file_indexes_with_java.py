"""Java skips files and rows by the file indexes that we write: in manifests when it plans, in files when it reads."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from support.java_paimon import JavaPaimon
from support.tables import create_table

pytestmark = pytest.mark.interop

INDEXES = {
    "file-index.bloom-filter.columns": "id", "file-index.bloom-filter.id.items": "100",
    "file-index.bitmap.columns": "color", "metadata.stats-mode": "none", "write-only": "true",
}  # fmt: skip
IN_MANIFEST = {"file-index.in-manifest-threshold": "1 mb"}
IN_FILES = {"file-index.in-manifest-threshold": "1 b"}


@pytest.mark.parametrize(("place", "planned"), [(IN_MANIFEST, 1), (IN_FILES, 3)], ids=["embedded", "files"])
def test_java_skips_what_our_indexes_exclude(
    java: JavaPaimon, tmp_path: Path, place: Mapping[str, str], planned: int
) -> None:
    table = create_table(tmp_path, "id INT, color STRING", options={**INDEXES, **place})
    for number in range(3):  # even ids in turn, so that no statistics exclude a file
        table.write(
            [{"id": 2 * (number + 3 * i), "color": f"only {number}" if i % 10 == 0 else "red"} for i in range(30)]
        )
    directory = Path(table.location)
    assert java.count_equal(directory, 0, 98) == (planned, 30)  # a bloom filter selects whole files
    assert java.count_equal(directory, 1, "only 2") == (planned, 3)
    assert java.count_equal(directory, 0, 97) == (0 if planned == 1 else 3, 0)
    assert java.count_equal(directory, 0, 98, {"file-index.read.enabled": "false"}) == (3, 90)
