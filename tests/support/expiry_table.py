"""A table whose data files are only names, with everything that references files, and its invariants.

The reachable files are computed here in the simplest way, independent of the code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve, frozen

from paimon.domain.commit.message import CompactIncrement, DataIncrement
from paimon.domain.commit.request import CommitRequest
from paimon.domain.errors import NotFound, PaimonError
from paimon.domain.maintenance.snapshot_expiry import Retention
from paimon.domain.manifest.entries import DataFileMeta, FileKind, FileSource, IndexManifestEntry, ManifestEntry
from paimon.domain.manifest.merge_entries import live_files
from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot, tag_to_json
from paimon.operations.commit.commit import commit
from paimon.operations.expire.expire_changelogs import expire_changelogs
from paimon.operations.expire.expire_snapshots import expire_snapshots
from paimon.operations.expire.orphan_files import remove_orphans
from paimon.operations.metadata.manifests import read_index_manifest, read_manifest, read_manifest_list
from paimon.operations.metadata.snapshots import latest_snapshot, snapshots, tags
from paimon.operations.metadata.storage_time import OlderThan
from paimon.operations.read.changes.history import find_changelog, list_changelog_ids
from paimon.operations.refs.branches import create_branch, delete_branch, fast_forward
from paimon.operations.refs.consumers import delete_consumer, reset_consumer
from paimon.operations.refs.rollback import roll_back
from paimon.operations.refs.tags import create_tag, delete_tag, rename_tag, replace_tag
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine
from paimon.ports.files import FileIO, FileStatus
from paimon.testing.memory_files import MemoryFiles
from support import commit_tables

ROOT = "/lake/t"
SHARED = ("manifest", "index", "statistics", "bucket-0")
"""The directories whose files all branches share."""


class OldFiles(MemoryFiles):
    """Memory in which every file has the modification time 0."""

    def list(self, path: str) -> Sequence[FileStatus]:
        """See `MemoryFiles`."""
        return [evolve(status, modified_millis=0) for status in super().list(path)]


@frozen(eq=False)
class ExpiryTable:
    """One table, and the process that works on it."""

    context: TableContext

    @property
    def engine(self) -> Engine:
        """The ports of the process."""
        return self.context.engine

    @property
    def table(self) -> TableDefinition:
        """The definition of the table."""
        return self.context.table

    @classmethod
    def new(cls, options: Mapping[str, str] | None = None) -> ExpiryTable:
        engine = commit_tables.engine_on(OldFiles())
        small = {"bucket": "1", "manifest.merge-min-count": "3"}
        table = commit_tables.table_at(ROOT, keyed=True, options=small | dict(options or {}))
        commit_tables.create(engine, table)
        return cls(TableContext(engine, table))

    @property
    def contents(self) -> dict[str, bytes]:
        assert isinstance(self.engine.files, MemoryFiles)
        return self.engine.files.contents

    def copy_storage(self) -> ExpiryTable:
        """Return a copy of the storage, for another attempt."""
        files = OldFiles()
        files.contents = dict(self.contents)
        return ExpiryTable(self.context.with_engine(commit_tables.as_another_process(self.engine, files)))

    def with_files(self, files: FileIO) -> ExpiryTable:
        """Another process that reads the storage through these files."""
        return ExpiryTable(self.context.with_engine(commit_tables.as_another_process(self.engine, files)))

    def on_branch(self, branch: str) -> ExpiryTable:
        """The table on a branch."""
        return ExpiryTable(self.context.with_table(evolve(self.table, paths=TablePaths(ROOT, branch))))

    # --- operations

    def append(self, number: int) -> None:
        """Two files at level 0, one with an extra file, a changelog file, and a new index file."""
        name = self.fresh_name()
        files = [self.file(f"{name}-a", low=number), self.file(f"{name}-b", low=number + 1, extra=True)]
        changelog = (self.file(f"changelog-{name}"),) if self.table.options.changelog_producer != "none" else ()
        index = IndexManifestEntry(FileKind.ADD, commit_tables.partition(None), 0, "HASH", f"index-{name}", 1, 1)
        self.put(f"index/index-{name}")
        data = DataIncrement(new_files=tuple(files), changelog_files=changelog, new_index_files=(index,))
        self.commit(commit_tables.message(self.table, data=data))

    def compact(self, number: int) -> None:
        """Rewrite all files into one at the top level, or move them there."""
        live = [e.file for e in self.live(self.latest())]
        if not live:
            return
        if len(live) == 1 and live[0].level < 5:
            after: tuple[DataFileMeta, ...] = (evolve(live[0], level=5),)
        else:
            high = max(number, 1) + 100
            after = (evolve(self.file(self.fresh_name(), high=high), level=5, file_source=FileSource.COMPACT),)
        self.commit(commit_tables.message(self.table, compact=CompactIncrement(tuple(live), after)))

    def overwrite(self, number: int) -> None:
        """One file instead of everything."""
        data = DataIncrement(new_files=(self.file(self.fresh_name(), low=number),))
        self.commit(commit_tables.message(self.table, data=data), overwrite={})

    def commit(self, message: Any, **more: Any) -> None:
        commit(self.context, CommitRequest((message,), "user", **more))

    def file(self, name: str, low: int = 0, high: int = 0, extra: bool = False) -> DataFileMeta:
        """A file that exists."""
        self.put(f"bucket-0/{name}")
        if extra:
            self.put(f"bucket-0/{name}.index")
        extras = (f"{name}.index",) if extra else ()
        file = commit_tables.data_file(name, low=low, high=max(low, high))
        return evolve(file, extra_files=extras, file_source=FileSource.APPEND)

    def put(self, path: str) -> None:
        self.engine.files.put_if_absent(f"{ROOT}/{path}", b"data")

    def fresh_name(self) -> str:
        return f"data-{self.engine.ids.uuid()}"

    def expire(self, keep: int, everything: bool = False) -> None:
        """Retain at most this number of snapshots."""
        expire_snapshots(self.context, Retention(1, max(1, keep), 10**12, 50), everything)

    def expire_changes(self, keep: int) -> None:
        """Retain at most this number of changelogs."""
        expire_changelogs(self.context, Retention(1, max(1, keep), 10**12, 50))

    def remove_orphan_files(self) -> list[str]:
        """Remove orphan files and return their paths."""
        return list(remove_orphans(self.context, OlderThan(0), allow_young=True)["path"].to_pylist())

    # --- states

    def latest(self) -> Snapshot | None:
        return latest_snapshot(self.context)

    def live(self, snapshot: Snapshot | None) -> list[ManifestEntry]:
        """The live files of a state, by the row-wise rule."""
        if snapshot is None:
            return []
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        return live_files(e for name in lists for e in self.entries(name))

    def entries(self, manifest_list: str) -> Iterator[ManifestEntry]:
        for meta in read_manifest_list(self.context, manifest_list):
            yield from read_manifest(self.context, meta.file_name)

    def states(self) -> dict[str, tuple[Snapshot, bool]]:
        """Every snapshot and tag of every branch, and whether it has a changelog."""
        found: dict[str, tuple[Snapshot, bool]] = {}
        names = [s.name.removeprefix("branch-") for s in self.engine.files.list(f"{ROOT}/branch")]
        for branch in ["main", *names]:
            context = self.context.at_branch(branch)
            found |= {f"{branch}/{s.id}": (s, True) for s in snapshots(context)}
            found |= {f"{branch}/{t.name}": (t.snapshot, False) for t in tags(context)}
        return found

    def reads(self) -> dict[str, list[str]]:
        """The content of each state. Fails if one of its files is missing."""
        found = {}
        for name, (snapshot, has_changelog) in self.states().items():
            live = self.live(snapshot)
            wanted = {f"bucket-0/{n}" for e in live for n in (e.file.file_name, *e.file.extra_files)}
            wanted |= self.metadata(snapshot)
            if has_changelog:
                wanted |= self.changelog(snapshot)
            missing = sorted(p for p in wanted if f"{ROOT}/{p}" not in self.contents)
            assert not missing, f"{name} lacks {missing}"
            found[name] = sorted(e.file.file_name for e in live)
        for branch in {name.split("/")[0] for name in found} | {"main"}:
            context = self.context.at_branch(branch)
            for snapshot_id in list_changelog_ids(context):
                changelog_snapshot = find_changelog(context, snapshot_id)
                assert changelog_snapshot is not None
                missing = sorted(p for p in self.changes(changelog_snapshot) if f"{ROOT}/{p}" not in self.contents)
                assert not missing, f"changelog {snapshot_id} of {branch} lacks {missing}"
        return found

    def metadata(self, snapshot: Snapshot) -> set[str]:
        """The metadata files of a state."""
        found = {f"manifest/{n}" for n in (snapshot.base_manifest_list, snapshot.delta_manifest_list)}
        for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            found |= {f"manifest/{m.file_name}" for m in read_manifest_list(self.context, name)}
        if snapshot.index_manifest:
            found.add(f"manifest/{snapshot.index_manifest}")
            entries = read_index_manifest(self.context, snapshot.index_manifest)
            found |= {f"index/{e.file_name}" for e in entries}
        return found

    def changelog(self, snapshot: Snapshot) -> set[str]:
        """The files of a changelog that only the changelog references."""
        name = snapshot.changelog_manifest_list
        if name is None:
            return set()
        found = {f"manifest/{name}"}
        found |= {f"manifest/{m.file_name}" for m in read_manifest_list(self.context, name)}
        return found | {f"bucket-0/{e.file.file_name}" for e in self.entries(name)}

    def changes(self, changelog_snapshot: Snapshot) -> set[str]:
        """The files that a follower reads of a long-lived changelog."""
        if self.table.options.changelog_producer != "none":
            return self.changelog(changelog_snapshot)
        if changelog_snapshot.commit_kind.value != "APPEND":
            return set()
        name = changelog_snapshot.delta_manifest_list
        found = {f"manifest/{name}"}
        found |= {f"manifest/{m.file_name}" for m in read_manifest_list(self.context, name)}
        added = [e.file for e in self.entries(name) if e.kind is FileKind.ADD]
        return found | {f"bucket-0/{n}" for f in added for n in (f.file_name, *f.extra_files)}

    def list_shared_files(self) -> set[str]:
        """The files of the shared directories."""
        below = (path.removeprefix(f"{ROOT}/") for path in self.contents)
        return {path for path in below if path.split("/")[0] in SHARED}

    def reachable(self) -> set[str]:
        """Files that only states reference (without long-lived changelogs)."""
        found: set[str] = set()
        for snapshot, has_changelog in self.states().values():
            found |= {f"bucket-0/{n}" for e in self.live(snapshot) for n in (e.file.file_name, *e.file.extra_files)}
            found |= self.metadata(snapshot)
            found |= self.changelog(snapshot) if has_changelog else set()
        return found


def has_succeeded(act: Callable[[], object]) -> bool:
    """Whether it could be done: a step that makes no sense here is refused by a typed error."""
    try:
        act()
    except PaimonError:
        return False
    return True


def tag_of_java(w: ExpiryTable, name: str, snapshot_id: int) -> None:
    """A tag as Java 1.4 writes it: without the snapshot's uuid."""
    tag = create_tag(w.context, name, snapshot_id)
    w.engine.files.replace(w.table.paths.tag(name), tag_to_json(evolve(tag, snapshot=evolve(tag.snapshot, uuid=None))))


def steps(w: ExpiryTable) -> dict[str, Callable[[int], object]]:
    """The operations on a table, by name. Each has a number as parameter."""
    context = w.context

    def choose_name(names: Sequence[str], n: int) -> str:
        if not names:
            raise NotFound("name", "any")
        return sorted(names)[n % len(names)]

    def tag(n: int) -> str:
        return choose_name([x.name for x in tags(context)], n)

    def branch(n: int) -> str:
        return choose_name([s.name.removeprefix("branch-") for s in context.files.list(context.paths.branches)], n)

    def some_id(n: int) -> int:
        ids = [s.id for s in snapshots(context)]
        return ids[n % len(ids)] if ids else 1

    return {
        "append": w.append,
        "compact": w.compact,
        "overwrite": w.overwrite,
        "tag": lambda n: create_tag(context, f"t{n}", some_id(n)),
        "tag as Java does": lambda n: tag_of_java(w, f"j{n}", some_id(n)),
        "replace tag": lambda n: replace_tag(context, tag(n), some_id(n)),
        "rename tag": lambda n: rename_tag(context, tag(n), f"r{n}"),
        "delete tag": lambda n: delete_tag(context, tag(n)),
        "branch": lambda n: create_branch(context, f"b{n}", tag(n) if n % 3 else None),
        "append to branch": lambda n: w.on_branch(branch(n)).append(n),
        "compact branch": lambda n: w.on_branch(branch(n)).compact(n),
        "expire branch": lambda n: w.on_branch(branch(n)).expire(n % 3),
        "delete branch": lambda n: delete_branch(context, branch(n)),
        "fast-forward": lambda n: fast_forward(context, branch(n)),
        "consumer": lambda n: reset_consumer(context, f"c{n % 2}", some_id(n)),
        "delete consumer": lambda n: delete_consumer(context, f"c{n % 2}"),
        "expire": lambda n: w.expire(n % 5),
        "expire looking everywhere": lambda n: w.expire(n % 5, everything=True),
        "expire changelogs": lambda n: w.expire_changes(n % 5),
        "roll back": lambda n: roll_back(context, some_id(n)),
        "roll back to tag": lambda n: roll_back(context, tag=tag(n)),
        "clean": lambda n: w.remove_orphan_files(),
    }
