"""Which index files a change of deletion vectors replaces: no vector is lost, and no file is rewritten needlessly."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.commit.index_entries import plan_rewrites, vector_entries
from paimon.domain.manifest.entries import DELETION_VECTORS, DeletionVectorRange, FileKind, IndexManifestEntry

FILES = "abcdefgh"


def entry(name: str, files: str, kind: str = DELETION_VECTORS, bucket: int = 0) -> IndexManifestEntry:
    ranges = tuple(DeletionVectorRange(f, 1, 22, 1) for f in files)
    return IndexManifestEntry(FileKind.ADD, b"p", bucket, kind, name, 9, len(files), ranges)


GROUPS = st.lists(st.sampled_from("ijk"), min_size=len(FILES), max_size=len(FILES)).map(
    lambda homes: [entry(i, "".join(f for f, home in zip(FILES, homes, strict=True) if home == i)) for i in "ijk"]
)


@given(GROUPS, st.sets(st.sampled_from(FILES)), st.booleans())
def test_remaining_vectors_stay_or_are_copied(
    index_entries: list[IndexManifestEntry], changed: set[str], bucketed: bool
) -> None:
    found = plan_rewrites(index_entries, changed, bucketed)
    replaced = {r.entry.file_name for r in found}
    staying = [r.data_file for e in index_entries if e.file_name not in replaced for r in e.deletion_vectors or ()]
    carried = [r.data_file for rewrite in found for r in rewrite.kept]
    assert sorted(staying + carried) == sorted(set(FILES) - changed)
    if bucketed:
        assert len(found) == len(index_entries)
    else:
        assert all(any(r.data_file in changed for r in f.entry.deletion_vectors or ()) for f in found)


def test_entries_by_bucket() -> None:
    entries = [entry("i", "a"), entry("j", "b", bucket=1), entry("h", "", kind="HASH"), entry("k", "c")]
    found = vector_entries(entries)
    assert {key[1]: [e.file_name for e in of] for key, of in found.items()} == {0: ["i", "k"], 1: ["j"]}
