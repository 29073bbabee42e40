"""A table whose files are only names, with everything that keeps or drops files, and what must be true of it.

What is reachable is worked out here in the simplest way there is, apart from the code under test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import commit_world as world
from attrs import evolve, frozen

from paimon.domain.commit.message import CompactIncrement, DataIncrement
from paimon.domain.errors import NotFound, PaimonError
from paimon.domain.maintenance.retention.expiry import Retention
from paimon.domain.manifest.entries import DataFileMeta, FileKind, FileSource, IndexManifestEntry, ManifestEntry
from paimon.domain.manifest.merge import live_files
from paimon.domain.paths import TablePaths
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.json import tag_to_json
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.commit.commit import CommitRequest, commit
from paimon.operations.maintain.refs.branches import create_branch, delete_branch, fast_forward
from paimon.operations.maintain.refs.consumers import delete_consumer, reset_consumer
from paimon.operations.maintain.refs.rollback import roll_back
from paimon.operations.maintain.refs.tags import create_tag, delete_tag, rename_tag, replace_tag
from paimon.operations.maintain.retention.expire_changelogs import expire_changelogs
from paimon.operations.maintain.retention.expire_snapshots import expire_snapshots
from paimon.operations.maintain.retention.orphans import remove_orphans
from paimon.operations.read.changes.history import changelog_ids, find_changelog
from paimon.operations.read.manifests import read_index_manifest, read_manifest, read_manifest_list
from paimon.operations.read.snapshots import latest_snapshot, snapshots, tags
from paimon.ports.engine import Engine
from paimon.ports.files import FileIO, FileStatus
from paimon.testing.memory_files import MemoryFiles

ROOT = "/lake/t"
SHARED = ("manifest", "index", "statistics", "bucket-0")
"""The directories whose files belong to no branch alone."""


class OldFiles(MemoryFiles):
    """Memory in which every file is as old as can be."""

    def list(self, path: str) -> Sequence[FileStatus]:
        """See `MemoryFiles`."""
        return [evolve(status, modified_millis=0) for status in super().list(path)]


@frozen(eq=False)
class World:
    """One table, and the process that works on it."""

    engine: Engine
    table: TableDefinition

    @classmethod
    def new(cls, options: Mapping[str, str] | None = None) -> World:
        engine = world.engine_on(OldFiles())
        small = {"bucket": "1", "manifest.merge-min-count": "3"}
        table = world.table_at(ROOT, keyed=True, options=small | dict(options or {}))
        world.create(engine, table)
        return cls(engine, table)

    @property
    def contents(self) -> dict[str, bytes]:
        assert isinstance(self.engine.files, MemoryFiles)
        return self.engine.files.contents

    def copied(self) -> World:
        """The same storage, for another try."""
        files = OldFiles()
        files.contents = dict(self.contents)
        return World(world.fresh(self.engine, files), self.table)

    def through(self, files: FileIO) -> World:
        """Another process, which sees the storage through these files."""
        return World(world.fresh(self.engine, files), self.table)

    def on(self, branch: str) -> World:
        """The table on a branch."""
        return World(self.engine, evolve(self.table, paths=TablePaths(ROOT, branch)))

    # What may happen

    def append(self, number: int) -> None:
        """Two files at level 0, one with an extra file, a changelog file, and a new index file."""
        name = self.fresh_name()
        files = [self.file(f"{name}-a", low=number), self.file(f"{name}-b", low=number + 1, extra=True)]
        changelog = (self.file(f"changelog-{name}"),) if self.table.options.changelog_producer != "none" else ()
        index = IndexManifestEntry(FileKind.ADD, world.partition(None), 0, "HASH", f"index-{name}", 1, 1)
        self.put(f"index/index-{name}")
        data = DataIncrement(new_files=tuple(files), changelog_files=changelog, new_index_files=(index,))
        self.commit(world.message(self.table, data=data))

    def compact(self, number: int) -> None:
        """Everything into one file at the top level, or moved there without being written again."""
        live = [e.file for e in self.live(self.latest())]
        if not live:
            return
        if len(live) == 1 and live[0].level < 5:
            after: tuple[DataFileMeta, ...] = (evolve(live[0], level=5),)
        else:
            high = max(number, 1) + 100
            after = (evolve(self.file(self.fresh_name(), high=high), level=5, file_source=FileSource.COMPACT),)
        self.commit(world.message(self.table, compact=CompactIncrement(tuple(live), after)))

    def overwrite(self, number: int) -> None:
        """One file instead of everything."""
        data = DataIncrement(new_files=(self.file(self.fresh_name(), low=number),))
        self.commit(world.message(self.table, data=data), overwrite={})

    def commit(self, message: Any, **more: Any) -> None:
        commit(self.engine, self.table, CommitRequest((message,), "user", **more))

    def file(self, name: str, low: int = 0, high: int = 0, extra: bool = False) -> DataFileMeta:
        """A file that exists."""
        self.put(f"bucket-0/{name}")
        if extra:
            self.put(f"bucket-0/{name}.index")
        extras = (f"{name}.index",) if extra else ()
        file = world.data_file(name, low=low, high=max(low, high))
        return evolve(file, extra_files=extras, file_source=FileSource.APPEND)

    def put(self, path: str) -> None:
        self.engine.files.put_if_absent(f"{ROOT}/{path}", b"data")

    def fresh_name(self) -> str:
        return f"data-{self.engine.ids.uuid()}"

    def expire(self, keep: int, everything: bool = False) -> None:
        """Keep at most so many snapshots."""
        expire_snapshots(self.engine, self.table, Retention(1, max(1, keep), 10**12, 50), everything)

    def expire_changes(self, keep: int) -> None:
        """Keep at most so many changelogs."""
        expire_changelogs(self.engine, self.table, Retention(1, max(1, keep), 10**12, 50))

    def clean(self) -> list[str]:
        """Remove orphan files; answers their paths."""
        return list(remove_orphans(self.engine, self.table, 10**15)["path"].to_pylist())

    # What there is

    def latest(self) -> Snapshot | None:
        return latest_snapshot(self.engine, self.table.paths)

    def live(self, snapshot: Snapshot | None) -> list[ManifestEntry]:
        """The live files of a state, by the row-wise rule."""
        if snapshot is None:
            return []
        lists = (snapshot.base_manifest_list, snapshot.delta_manifest_list)
        return live_files(e for name in lists for e in self.entries(name))

    def entries(self, manifest_list: str) -> Iterator[ManifestEntry]:
        for meta in read_manifest_list(self.engine, self.table, manifest_list):
            yield from read_manifest(self.engine, self.table, meta.file_name)

    def states(self) -> dict[str, tuple[Snapshot, bool]]:
        """Every snapshot and tag of every branch, and whether it has a changelog."""
        found: dict[str, tuple[Snapshot, bool]] = {}
        names = [s.name.removeprefix("branch-") for s in self.engine.files.list(f"{ROOT}/branch")]
        for branch in ["main", *names]:
            paths = TablePaths(ROOT, branch)
            found |= {f"{branch}/{s.id}": (s, True) for s in snapshots(self.engine, paths)}
            found |= {f"{branch}/{t.name}": (t.snapshot, False) for t in tags(self.engine, paths)}
        return found

    def reads(self) -> dict[str, list[str]]:
        """What each state holds, after looking whether its files are all there."""
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
            for snapshot_id in changelog_ids(self.engine, TablePaths(ROOT, branch)):
                kept = find_changelog(self.engine, TablePaths(ROOT, branch), snapshot_id)
                assert kept is not None
                missing = sorted(p for p in self.changes(kept) if f"{ROOT}/{p}" not in self.contents)
                assert not missing, f"changelog {snapshot_id} of {branch} lacks {missing}"
        return found

    def metadata(self, snapshot: Snapshot) -> set[str]:
        """The metadata files of a state."""
        found = {f"manifest/{n}" for n in (snapshot.base_manifest_list, snapshot.delta_manifest_list)}
        for name in (snapshot.base_manifest_list, snapshot.delta_manifest_list):
            found |= {f"manifest/{m.file_name}" for m in read_manifest_list(self.engine, self.table, name)}
        if snapshot.index_manifest:
            found.add(f"manifest/{snapshot.index_manifest}")
            entries = read_index_manifest(self.engine, self.table, snapshot.index_manifest)
            found |= {f"index/{e.file_name}" for e in entries}
        return found

    def changelog(self, snapshot: Snapshot) -> set[str]:
        """The files of a changelog that has files of its own."""
        name = snapshot.changelog_manifest_list
        if name is None:
            return set()
        found = {f"manifest/{name}"}
        found |= {f"manifest/{m.file_name}" for m in read_manifest_list(self.engine, self.table, name)}
        return found | {f"bucket-0/{e.file.file_name}" for e in self.entries(name)}

    def changes(self, kept: Snapshot) -> set[str]:
        """The files that a follower reads of a long-lived changelog."""
        if self.table.options.changelog_producer != "none":
            return self.changelog(kept)
        if kept.commit_kind.value != "APPEND":
            return set()
        name = kept.delta_manifest_list
        found = {f"manifest/{name}"}
        found |= {f"manifest/{m.file_name}" for m in read_manifest_list(self.engine, self.table, name)}
        added = [e.file for e in self.entries(name) if e.kind is FileKind.ADD]
        return found | {f"bucket-0/{n}" for f in added for n in (f.file_name, *f.extra_files)}

    def stored(self) -> set[str]:
        """The files of the shared directories."""
        below = (path.removeprefix(f"{ROOT}/") for path in self.contents)
        return {path for path in below if path.split("/")[0] in SHARED}

    def reachable(self) -> set[str]:
        """What states alone need (where there are no long-lived changelogs)."""
        found: set[str] = set()
        for snapshot, has_changelog in self.states().values():
            found |= {f"bucket-0/{n}" for e in self.live(snapshot) for n in (e.file.file_name, *e.file.extra_files)}
            found |= self.metadata(snapshot)
            found |= self.changelog(snapshot) if has_changelog else set()
        return found


def attempted(act: Callable[[], object]) -> bool:
    """Whether it could be done: a step that makes no sense here is refused by a typed error."""
    try:
        act()
    except PaimonError:
        return False
    return True


def tag_of_java(w: World, name: str, snapshot_id: int) -> None:
    """A tag as Java 1.4 writes it: without the snapshot's uuid."""
    tag = create_tag(w.engine, w.table, name, snapshot_id)
    w.engine.files.replace(w.table.paths.tag(name), tag_to_json(evolve(tag, snapshot=evolve(tag.snapshot, uuid=None))))


def steps(w: World) -> dict[str, Callable[[int], object]]:
    """What can happen to a table, by name; each takes a number that chooses."""
    e, t = w.engine, w.table

    def chosen(names: Sequence[str], n: int) -> str:
        if not names:
            raise NotFound("name", "any")
        return sorted(names)[n % len(names)]

    def tag(n: int) -> str:
        return chosen([x.name for x in tags(e, t.paths)], n)

    def branch(n: int) -> str:
        return chosen([s.name.removeprefix("branch-") for s in e.files.list(t.paths.branches)], n)

    def some_id(n: int) -> int:
        ids = [s.id for s in snapshots(e, t.paths)]
        return ids[n % len(ids)] if ids else 1

    return {
        "append": w.append,
        "compact": w.compact,
        "overwrite": w.overwrite,
        "tag": lambda n: create_tag(e, t, f"t{n}", some_id(n)),
        "tag as Java does": lambda n: tag_of_java(w, f"j{n}", some_id(n)),
        "replace tag": lambda n: replace_tag(e, t, tag(n), some_id(n)),
        "rename tag": lambda n: rename_tag(e, t, tag(n), f"r{n}"),
        "delete tag": lambda n: delete_tag(e, t, tag(n)),
        "branch": lambda n: create_branch(e, t, f"b{n}", tag(n) if n % 3 else None),
        "append to branch": lambda n: w.on(branch(n)).append(n),
        "compact branch": lambda n: w.on(branch(n)).compact(n),
        "expire branch": lambda n: w.on(branch(n)).expire(n % 3),
        "delete branch": lambda n: delete_branch(e, t, branch(n)),
        "fast-forward": lambda n: fast_forward(e, t, branch(n)),
        "consumer": lambda n: reset_consumer(e, t.paths, f"c{n % 2}", some_id(n)),
        "delete consumer": lambda n: delete_consumer(e, t.paths, f"c{n % 2}"),
        "expire": lambda n: w.expire(n % 5),
        "expire looking everywhere": lambda n: w.expire(n % 5, everything=True),
        "expire changelogs": lambda n: w.expire_changes(n % 5),
        "roll back": lambda n: roll_back(e, t, some_id(n)),
        "roll back to tag": lambda n: roll_back(e, t, tag=tag(n)),
        "clean": lambda n: w.clean(),
    }
