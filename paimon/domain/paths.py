"""Where a table keeps what: every path of a table is made here.

Law: a name taken from a file or from a caller becomes part of a path only after `segment` accepted it as a single
path segment; a path taken as a whole (external paths) only after `check_within`. Source: `FileStorePathFactory`, the
managers.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from attrs import frozen

from paimon.domain.errors import CorruptTable, InvalidRequest
from paimon.domain.texts import is_unicode

MAIN_BRANCH = "main"
_BAD_CHARACTER = re.compile(r"[/\\\x00-\x1f\x7f\ud800-\udfff]")


def segment(name: str, what: str = "name") -> str:
    """The name itself, if it is one non-empty path segment; else InvalidRequest.

    Refused: empty, ``.``, ``..``, a slash or backslash, control characters, a NUL, half a character.
    """
    if not isinstance(name, str) or not name or name in (".", "..") or _BAD_CHARACTER.search(name):
        raise InvalidRequest(
            f"{what} {name!r} is not a single path segment", subject=str(name), hint="use a name without path parts"
        )
    return name


def stored_segment(name: str, path: str) -> str:
    """Like `segment` for a name read from the file `path`: a bad one means that file is corrupt."""
    try:
        return segment(name, "file name")
    except InvalidRequest as error:
        raise CorruptTable(path, f"holds the file name {name!r}, which would leave its directory") from error


def join(*parts: str) -> str:
    """Parts joined by single slashes; empty parts are left out."""
    kept = [p for p in parts if p]
    return "/".join([kept[0].rstrip("/"), *(p.strip("/") for p in kept[1:])]) if kept else ""


def check_within(path: str, roots: Sequence[str], source: str) -> str:
    """The path itself, if it is normalised and lies under one of `roots`; else CorruptTable naming `source`."""
    scheme, rest = _split_scheme(path)
    clean = posixpath.normpath(rest) == rest.rstrip("/") and "\0" not in path and is_unicode(path)
    for root in roots:
        root_scheme, root_rest = _split_scheme(root)
        if clean and scheme == root_scheme and (rest + "/").startswith(root_rest.rstrip("/") + "/"):
            return path
    raise CorruptTable(
        source,
        f"names {path!r}, which lies outside the table and the allowed roots",
        hint="pass allowed_roots=[…] if that place is to be trusted",
    )


def _split_scheme(path: str) -> tuple[str, str]:
    scheme, colon, rest = path.partition(":")
    if colon and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum() and len(scheme) > 1:
        stripped = rest.lstrip("/")
        return ("" if scheme == "file" else scheme), ("/" + stripped if scheme == "file" else stripped)
    return "", path


@frozen
class TablePaths:
    """The paths of one table, seen from one branch: metadata lies in the branch, manifests and data in the root."""

    root: str
    branch: str = MAIN_BRANCH

    @property
    def metadata_root(self) -> str:
        """Where this branch keeps its metadata."""
        return self.root if self.branch == MAIN_BRANCH else self.branch_directory(self.branch)

    def branch_directory(self, branch: str) -> str:
        """The directory of a branch other than main."""
        return join(self.root, "branch", f"branch-{segment(branch, 'branch name')}")

    @property
    def snapshots(self) -> str:
        """The directory of snapshots."""
        return join(self.metadata_root, "snapshot")

    def snapshot(self, snapshot_id: int) -> str:
        """The file of one snapshot."""
        return join(self.snapshots, f"snapshot-{snapshot_id}")

    @property
    def latest_hint(self) -> str:
        """The LATEST hint."""
        return join(self.snapshots, "LATEST")

    @property
    def earliest_hint(self) -> str:
        """The EARLIEST hint."""
        return join(self.snapshots, "EARLIEST")

    @property
    def schemas(self) -> str:
        """The directory of schemas."""
        return join(self.metadata_root, "schema")

    def schema(self, schema_id: int) -> str:
        """The file of one schema."""
        return join(self.schemas, f"schema-{schema_id}")

    @property
    def tags(self) -> str:
        """The directory of tags."""
        return join(self.metadata_root, "tag")

    def tag(self, name: str) -> str:
        """The file of one tag."""
        return join(self.tags, f"tag-{segment(name, 'tag name')}")

    @property
    def branches(self) -> str:
        """The directory of branches."""
        return join(self.root, "branch")

    @property
    def consumers(self) -> str:
        """The directory of consumers."""
        return join(self.metadata_root, "consumer")

    @property
    def changelogs(self) -> str:
        """The directory of long-lived changelogs."""
        return join(self.metadata_root, "changelog")

    def changelog(self, snapshot_id: int) -> str:
        """The file of one long-lived changelog."""
        return join(self.changelogs, f"changelog-{snapshot_id}")

    @property
    def manifests(self) -> str:
        """The directory of manifests, manifest lists and index manifests (shared by all branches)."""
        return join(self.root, "manifest")

    def manifest(self, name: str, source: str = "") -> str:
        """A manifest, manifest list or index manifest by its stored name; `source` is the file that holds the name."""
        directory = self.manifests
        return join(directory, stored_segment(name, source or directory))

    def index(self, name: str, source: str = "") -> str:
        """An index file by its stored name."""
        return join(self.root, "index", stored_segment(name, source or self.root))

    def statistics(self, name: str, source: str = "") -> str:
        """A statistics file by its stored name."""
        return join(self.root, "statistics", stored_segment(name, source or self.root))

    def bucket_directory(self, partition_path: str, bucket: int, data_directory: str = "") -> str:
        """The directory of a bucket; `partition_path` is ``"k=v/…"`` or empty, bucket -2 is ``bucket-postpone``."""
        name = "bucket-postpone" if bucket == -2 else f"bucket-{bucket}"
        return join(self.data_root(data_directory), partition_path, name)

    def data_root(self, data_directory: str = "") -> str:
        """Where partitions and buckets lie: the table, or what `data-file.path-directory` names below it."""
        parts = [part for part in data_directory.split("/") if part]
        return join(self.root, *(segment(part, "data-file.path-directory") for part in parts))
