"""The files of a writer's buckets: as they stand in the table, and as the writer has changed them since.

Law: what stands is read from the snapshots themselves, never guessed: what others did is seen, and what this writer
handed out counts until a snapshot shows it, or shows that it was lost. Source: `AbstractFileStoreWrite`, `Levels`
(which take for granted that nobody else writes).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import frozen

from paimon.domain.commit.increments import files_after
from paimon.domain.commit.message import CommitMessage
from paimon.domain.errors import CorruptTable
from paimon.domain.manifest.entries import DataFileMeta, FileKind, ManifestEntry
from paimon.domain.schema.table_definition import TableDefinition
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.operations.read.manifests import read_manifest, read_manifest_list
from paimon.operations.read.snapshots import find_snapshot, latest_snapshot
from paimon.operations.write.restore import Restored, Restoring
from paimon.operations.write.route import Address
from paimon.ports.engine import Engine

_MOST_STEPS = 32
"""Over more snapshots than these, reading the newest one whole is cheaper than following."""


@frozen(eq=False)
class HandedOut:
    """Messages that were prepared together, by bucket."""

    messages: dict[Address, CommitMessage]

    def is_shown_by(self, added: Collection[tuple[str, int]]) -> bool:
        """Whether one of these (name, level) came with it."""
        return any(
            (f.file_name, f.level) in added
            for message in self.messages.values()
            for f in (*message.data.new_files, *message.compact.compact_after)
        )


class CommittedFiles:
    """Follows the table from snapshot to snapshot: a state machine.

    `keeps_files` false: only sequence numbers and numbers of buckets are wanted, of the snapshot met first.
    """

    def __init__(self, engine: Engine, table: TableDefinition, keeps_files: bool) -> None:
        self._engine = engine
        self._table = table
        self._keeps_files = keeps_files
        self._restoring: Restoring | None = None
        self._standing: dict[Address, dict[str, DataFileMeta]] = {}
        self._handed_out: list[HandedOut] = []
        self.snapshot: Snapshot | None = None

    def restore(self, addresses: Sequence[Address]) -> Restored:
        """The state of buckets met for the first time."""
        found = self._found(addresses)
        if self._keeps_files:
            self._standing |= {a: {f.file_name: f for f in found.files.get(a, ())} for a in addresses}
        return found

    def forgets(self, address: Address) -> bool:
        """Follow this bucket no longer; false where it cannot be restored again as it is."""
        if not self._keeps_files or self.awaits(address):
            return False
        self._standing.pop(address, None)
        return True

    def advance(self) -> None:
        """Go on to the newest snapshot."""
        if self._restoring is None:
            return
        newest = latest_snapshot(self._engine, self._table.paths)
        if newest == self.snapshot:
            return
        steps = self._steps(newest)
        if steps is None:
            self._begin_anew(newest)
            return
        added: set[tuple[str, int]] = set()
        try:
            for entry in [entry for step in steps for entry in self._delta(step)]:
                self._apply(entry, added)
        except CorruptTable:
            if all(self._stands(step) for step in steps):
                raise
            self._begin_anew(latest_snapshot(self._engine, self._table.paths))
            return
        self._pin(newest)
        self._settle(added)

    def hand_out(self, messages: Iterable[CommitMessage]) -> None:
        """Remember what the writer has told of its changes."""
        by_bucket = {Address(m.partition, m.bucket): m for m in messages}
        if by_bucket and self._keeps_files:
            self._handed_out.append(HandedOut(by_bucket))

    def give_up(self) -> None:
        """What was handed out does not count any more."""
        self._handed_out.clear()

    def standing(self, address: Address) -> Collection[str]:
        """The names of a bucket's files in the snapshot known."""
        return self._standing.get(address, {}).keys()

    def awaits(self, address: Address) -> bool:
        """Whether changes of this bucket were handed out that no snapshot shows yet."""
        return any(address in handed.messages for handed in self._handed_out)

    def files_of(self, address: Address) -> dict[str, DataFileMeta]:
        """The files of a bucket by name, with what was handed out."""
        files = self._standing.get(address, {})
        for handed in self._handed_out:
            if message := handed.messages.get(address):
                files = files_after(files, message.data, message.compact)
        return files

    def _found(self, addresses: Sequence[Address]) -> Restored:
        if self._restoring is None:
            self._pin(latest_snapshot(self._engine, self._table.paths))
        while True:
            assert self._restoring is not None
            try:
                return self._restoring.state_of(addresses)
            except CorruptTable:
                if self.snapshot is None or self._stands(self.snapshot):
                    raise
            # It expired while it was read: what is known goes on from a newer one.
            self._begin_anew(latest_snapshot(self._engine, self._table.paths))

    def _stands(self, snapshot: Snapshot) -> bool:
        return find_snapshot(self._engine, self._table.paths, snapshot.id) == snapshot

    def _pin(self, snapshot: Snapshot | None) -> None:
        self.snapshot = snapshot
        self._restoring = Restoring(self._engine, self._table, snapshot, self._keeps_files)

    def _steps(self, newest: Snapshot | None) -> list[Snapshot] | None:
        """The snapshots after the one known, through the newest; None where they do not lead on from it."""
        known = self.snapshot
        if newest is None or known is None or not known.id < newest.id <= known.id + _MOST_STEPS:
            return None
        found = [find_snapshot(self._engine, self._table.paths, i) for i in range(known.id, newest.id)]
        chain = [s for s in found if s is not None]
        if len(chain) < len(found) or chain[0].identity != known.identity:
            return None
        return [*chain[1:], newest]

    def _delta(self, snapshot: Snapshot) -> list[ManifestEntry]:
        metas = read_manifest_list(self._engine, self._table, snapshot.delta_manifest_list)
        return [entry for meta in metas for entry in read_manifest(self._engine, self._table, meta.file_name)]

    def _apply(self, entry: ManifestEntry, added: set[tuple[str, int]]) -> None:
        files = self._standing.get(Address(entry.partition, entry.bucket))
        if entry.kind is FileKind.ADD:
            added.add((entry.file.file_name, entry.file.level))
        if files is None:
            return
        known = files.get(entry.file.file_name)
        if entry.kind is FileKind.ADD:
            files[entry.file.file_name] = entry.file
        elif known is not None and known.level == entry.file.level:
            del files[entry.file.file_name]

    def _settle(self, added: Collection[tuple[str, int]]) -> None:
        """Commits follow one another: what a snapshot shows, and all before it, was published or lost by now."""
        shown = [i for i, handed in enumerate(self._handed_out) if handed.is_shown_by(added)]
        if shown:
            del self._handed_out[: shown[-1] + 1]

    def _begin_anew(self, newest: Snapshot | None) -> None:
        self._pin(newest)
        assert self._restoring is not None
        known = list(self._standing)
        self.restore(known)
        names = {(f.file_name, f.level) for files in self._standing.values() for f in files.values()}
        self._settle(names)
