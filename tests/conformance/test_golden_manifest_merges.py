"""Each commit of the golden histories merges the manifests that Java merged, into the same entries."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import pytest
from attrs import evolve
from support.commit_tables import engine_on
from support.golden_tables import golden_directory

from paimon.adapters.files.local import LocalFiles
from paimon.domain.manifest.entries import ManifestFileMeta
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.operations.commit.manifest_writer import BaseMerge, ManifestWriter
from paimon.operations.metadata.manifests import read_data_manifests, read_manifest, read_manifest_list
from paimon.operations.metadata.schemas import latest_schema
from paimon.operations.metadata.snapshots import snapshots
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.testing.memory_files import MemoryFiles

HOME = golden_directory()


class OverMemory(LocalFiles):
    """Reads the golden table; what is written goes to memory."""

    def __init__(self) -> None:
        super().__init__()
        self.new = MemoryFiles()
        self.create = self.new.create  # type: ignore[method-assign]

    def read(self, path: str, *limit: int) -> bytes:
        written = self.new.status(path) is not None
        return self.new.read(path, *limit) if written else super().read(path, *limit)


def entries(engine: Engine, table: TableDefinition, manifests: tuple[ManifestFileMeta, ...]) -> Counter[object]:
    found = (e for m in manifests for e in read_manifest(TableContext(engine, table), m.file_name))
    return Counter((e.kind, e.identity) for e in found)


MERGES = {
    "manifest_merge": 0,
    "manifest_merge_pk": 25,
    "manifest_merge_append": 5,
    "manifest_merge_parquet": 3,
    "manifest_merge_kept": 2,
}


@pytest.mark.parametrize(("case", "merges"), MERGES.items())
def test_merges_as_java_merges(case: str, merges: int) -> None:
    engine = engine_on(OverMemory())
    paths = TablePaths(str(HOME / case / "table"))
    schema = latest_schema(engine, paths)
    assert schema is not None
    table = TableDefinition(case, paths, schema, TableOptions.of(schema.options))
    history = snapshots(TableContext(engine, table))
    seen = 0
    for before, after in pairwise(history):
        if after.id != before.id + 1:
            continue
        given = read_data_manifests(TableContext(engine, table), before)
        merged = BaseMerge(TableContext(engine, table), ManifestWriter(TableContext(engine, table))).merge_manifests(
            given
        )
        javas = read_manifest_list(TableContext(engine, table), after.base_manifest_list)
        unchanged = {m.file_name for m in given}
        assert {m.file_name for m in merged} & unchanged == {m.file_name for m in javas} & unchanged, (
            f"snapshot {after.id}"
        )
        assert entries(engine, table, merged) == entries(engine, table, javas), f"snapshot {after.id}"
        ours = [evolve(m, file_name="", file_size=0) for m in merged if m.file_name not in unchanged]
        theirs = [evolve(m, file_name="", file_size=0) for m in javas if m.file_name not in unchanged]
        assert sum(m.num_added_files for m in ours) == sum(m.num_added_files for m in theirs)
        if len(ours) == len(theirs):
            assert ours == theirs
        seen += bool(theirs)
    assert seen >= merges
