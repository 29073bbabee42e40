"""The paths of a table: every path is built here.

Invariant: a name from a file or a caller becomes part of a path only after `check_segment` accepts it as a single path
segment. A path that is taken as a whole (an external path) is used only after `check_within`.
Source: `FileStorePathFactory` and the managers (`SnapshotManager`, `TagManager`, …).
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence

from attrs import frozen

from paimon.domain.errors import CorruptTable, InvalidRequest, capitalize
from paimon.domain.text_checks import is_unicode

MAIN_BRANCH = "main"
STATE_SUFFIX = ".state"
"""Suffix of a second consumer, whose file stores a state of the first one."""
_BAD_CHARACTER = re.compile(r"[/\\\x00-\x1f\x7f\ud800-\udfff]")


def check_segment(name: str, what: str = "name") -> str:
    """Return a path segment; refuse empty, ``.``, ``..``, slashes, controls, unpaired surrogates."""
    if not isinstance(name, str) or not name or name in (".", "..") or _BAD_CHARACTER.search(name):
        raise InvalidRequest(
            f"{capitalize(what)} {name!r} is not a single path segment",
            subject=str(name),
            hint="use a name that is not empty and has no slashes or control characters",
        )
    return name


def check_stored_segment(name: str, path: str) -> str:
    """Return the name itself if it is one path segment; otherwise the file `path`, which contains it, is corrupt."""
    try:
        return check_segment(name, "file name")
    except InvalidRequest as error:
        raise CorruptTable(path, f"contains the file name {name!r}, which is not a single path segment") from error


def join_path(*parts: str) -> str:
    """Join parts of a path with single slashes; empty parts are left out.

    >>> join_path("/warehouse/shop.db/", "orders", "", "snapshot")
    '/warehouse/shop.db/orders/snapshot'
    """
    kept = [p for p in parts if p]
    return "/".join([kept[0].rstrip("/"), *(p.strip("/") for p in kept[1:])]) if kept else ""


def check_within(path: str, roots: Sequence[str], source: str) -> str:
    """Return a normalized path under one of the roots; otherwise `source`, which names it, is corrupt."""
    if is_within(path, roots):
        return path
    raise CorruptTable(
        source,
        f"names {path!r}, which lies outside the table and the allowed roots",
        hint="pass allowed_roots=[…] if you trust this location",
    )


def is_within(path: str, roots: Sequence[str]) -> bool:
    """Return whether a path is normalized and lies under one of the roots."""
    return _is_normalised(path) and any(_is_below(path, root) for root in roots)


def may_overlap(first: str, second: str) -> bool:
    """Return whether one directory may contain the other; schemes are ignored, because s3 and s3a are one store."""
    one, other = (posixpath.normpath(_split_scheme(path)[1]).lstrip("/") + "/" for path in (first, second))
    return one.startswith(other) or other.startswith(one)


def _is_normalised(path: str) -> bool:
    _, rest = _split_scheme(path)
    return posixpath.normpath(rest) == rest.rstrip("/") and "\0" not in path and is_unicode(path)


def _is_below(path: str, root: str) -> bool:
    scheme, rest = _split_scheme(path)
    root_scheme, root_rest = _split_scheme(root)
    return scheme == root_scheme and (rest + "/").startswith(root_rest.rstrip("/") + "/")


def _split_scheme(path: str) -> tuple[str, str]:
    scheme, colon, rest = path.partition(":")
    if colon and scheme.replace("+", "").replace("-", "").replace(".", "").isalnum() and len(scheme) > 1:
        stripped = rest.lstrip("/")
        return ("" if scheme == "file" else scheme), ("/" + stripped if scheme == "file" else stripped)
    return "", path


def has_same_store(first: str, second: str) -> bool:
    """Return whether two URLs have the same scheme and bucket; false for local paths.

    >>> has_same_store("s3://lake/a", "s3://lake/b"), has_same_store("/a", "/a")
    (True, False)
    """
    return "://" in first and first.split("/", 3)[:3] == second.split("/", 3)[:3]


@frozen
class TablePaths:
    """The paths of one table, seen from one branch: metadata lies in the branch, manifests and data in the root."""

    # the directory or URL of the table
    root: str
    branch: str = MAIN_BRANCH

    @property
    def metadata_root(self) -> str:
        """Where this branch keeps its metadata."""
        return self.root if self.branch == MAIN_BRANCH else self.branch_directory(self.branch)

    def branch_directory(self, branch: str) -> str:
        """Return the directory of a branch other than main."""
        return join_path(self.root, "branch", f"branch-{check_segment(branch, 'branch name')}")

    @property
    def snapshots(self) -> str:
        """The directory of snapshots."""
        return join_path(self.metadata_root, "snapshot")

    def snapshot(self, snapshot_id: int) -> str:
        """Return the path of the file of one snapshot."""
        return join_path(self.snapshots, f"snapshot-{snapshot_id}")

    @property
    def latest_hint(self) -> str:
        """The LATEST hint."""
        return join_path(self.snapshots, "LATEST")

    @property
    def earliest_hint(self) -> str:
        """The EARLIEST hint."""
        return join_path(self.snapshots, "EARLIEST")

    @property
    def schemas(self) -> str:
        """The directory of schemas."""
        return join_path(self.metadata_root, "schema")

    def schema(self, schema_id: int) -> str:
        """Return the path of the file of one schema."""
        return join_path(self.schemas, f"schema-{schema_id}")

    @property
    def tags(self) -> str:
        """The directory of tags."""
        return join_path(self.metadata_root, "tag")

    def tag(self, name: str) -> str:
        """Return the path of the file of one tag."""
        return join_path(self.tags, f"tag-{check_segment(name, 'tag name')}")

    @property
    def branches(self) -> str:
        """The directory of branches."""
        return join_path(self.root, "branch")

    @property
    def consumers(self) -> str:
        """The directory of consumers."""
        return join_path(self.metadata_root, "consumer")

    @property
    def last_commits(self) -> str:
        """The directory of the records that expiry keeps of the last commits of users."""
        return join_path(self.metadata_root, "last-commit")

    @property
    def changelogs(self) -> str:
        """Directory of decoupled changelogs."""
        return join_path(self.metadata_root, "changelog")

    def changelog(self, snapshot_id: int) -> str:
        """Return the path of the file of one decoupled changelog."""
        return join_path(self.changelogs, f"changelog-{snapshot_id}")

    @property
    def manifests(self) -> str:
        """The directory of manifests, manifest lists and index manifests (shared by all branches)."""
        return join_path(self.root, "manifest")

    def manifest(self, name: str) -> str:
        """Return the path of a manifest, manifest list or index manifest by its stored name."""
        return join_path(self.manifests, check_stored_segment(name, self.manifests))

    def index(self, name: str, source: str = "") -> str:
        """Return the path of an index file by its stored name; `source` is the file that holds the name."""
        return join_path(self.root, "index", check_stored_segment(name, source or self.root))

    def statistics(self, name: str, source: str = "") -> str:
        """Return the path of a statistics file by its stored name; `source` is the file that holds the name."""
        return join_path(self.root, "statistics", check_stored_segment(name, source or self.root))

    def bucket_directory(self, partition_path: str, bucket: int, data_directory: str = "") -> str:
        """Return the directory of a bucket; bucket -2 is the directory ``bucket-postpone``.

        `partition_path` is ``"k=v/…"``, or empty. `data_directory` is the option `data-file.path-directory`.
        """
        name = "bucket-postpone" if bucket == -2 else f"bucket-{bucket}"
        return join_path(self.data_root(data_directory), partition_path, name)

    def data_root(self, data_directory: str = "") -> str:
        """Return the directory of partitions and buckets: the table, or what `data-file.path-directory` names."""
        parts = [part for part in data_directory.split("/") if part]
        return join_path(self.root, *(check_segment(part, "data-file.path-directory") for part in parts))
