"""The states of a table that a check follows, and what stream readers need: consumers, and changelogs without a gap.

Invariant: what cannot be read is a fault, and the check continues. Snapshot ids have no gap, and hints are never ahead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from attrs import field, frozen

from paimon.domain.errors import CorruptTable, NotFound, PaimonError, StorageError, Unsupported
from paimon.domain.json_text import HINT_FILE
from paimon.domain.maintenance.fault import Fault, FaultKind
from paimon.domain.paths import MAIN_BRANCH, join_path
from paimon.domain.snapshot.snapshot import Snapshot, parse_hint
from paimon.operations.commit.publish import find_detached_snapshots
from paimon.operations.expire.references import ReferencedPart, find_branch
from paimon.operations.metadata.consumers import list_consumer_files, read_consumer
from paimon.operations.metadata.schemas import load_schema
from paimon.operations.metadata.snapshots import (
    find_snapshot,
    list_branch_directories,
    load_tag,
    snapshot_ids,
    tag_names,
)
from paimon.operations.read.changes.history import find_changelog, find_first_id, list_changelog_ids
from paimon.operations.table_context import TableContext
from paimon.ports.engine import Engine


@frozen(eq=False)
class State:
    """One state of the table that a file names."""

    # the table on the branch of the state
    context: TableContext
    snapshot: Snapshot
    # the file that names the state
    path: str
    # such as "snapshot 7", "tag release" or "changelog 3"; with its branch if that is not main
    name: str
    # what the state needs of its snapshot
    part: ReferencedPart
    # the newest state of its branch, or a tag; its entries are checked one by one
    is_end: bool


@frozen(eq=False)
class Findings:
    """The states of a table, and the faults found so far."""

    # the states of all branches
    states: list[State] = field(factory=list)
    # each check appends to this list
    faults: list[Fault] = field(factory=list)
    # the table on each branch, and the text that is appended to the names of its states
    branches: list[tuple[TableContext, str]] = field(factory=list)

    def attempt(self, path: str, states: Sequence[str], check: Callable[[], object]) -> bool:
        """Check the file `path`, record an error as a fault of `states`, and return whether there was none."""
        try:
            check()
        except PaimonError as error:
            self.faults.append(to_fault(error, path, states))
            return False
        return True


def to_fault(error: PaimonError, path: str, states: Sequence[str]) -> Fault:
    """Convert a read's error to a fault; `path` if it names no file, `states` are those that need it."""
    if isinstance(error, Unsupported):
        return Fault(FaultKind.UNCHECKED, path, error.message, states)
    missing = isinstance(error, NotFound) or isinstance(error.__cause__, NotFound)
    reason = error.reason if isinstance(error, CorruptTable | StorageError) else error.message
    at = error.path if isinstance(error, CorruptTable | StorageError) else path
    return Fault(FaultKind.MISSING if missing else FaultKind.UNREADABLE, at, reason, states)


def find_states(context: TableContext) -> Findings:
    """Return all states of all branches."""
    findings = Findings()
    for branch in [MAIN_BRANCH, *list_branch_directories(context.engine, context.paths)]:
        where = "" if branch == MAIN_BRANCH else f" of branch {branch}"
        try:
            found = context if branch == context.table.branch else find_branch(context, branch)
        except PaimonError as error:
            findings.faults.append(to_fault(error, context.paths.branch_directory(branch), [f"branch {branch}"]))
            continue
        if found is None:  # directories of an interrupted creation or deletion
            continue
        findings.branches.append((found, where))
        _find_snapshots(found, where, findings)
        _find_tags(found, where, findings)
        _find_changelogs(found, where, findings)
    for state in findings.states:
        schema_id = state.snapshot.schema_id
        paths = state.context.paths
        findings.attempt(paths.schema(schema_id), [state.name], partial(load_schema, context.engine, paths, schema_id))
    return findings


def _find_snapshots(context: TableContext, where: str, findings: Findings) -> None:
    ids = _list_history(context, where, findings)
    for done, snapshot_id in enumerate(ids):
        path, name = context.paths.snapshot(snapshot_id), f"snapshot {snapshot_id}{where}"
        context.engine.observer.progress("checking snapshots", done, len(ids))

        read = partial(find_snapshot, context, snapshot_id)
        is_end = snapshot_id == ids[-1]
        to_state = partial(State, context, path=path, name=name, part=ReferencedPart.ALL, is_end=is_end)
        findings.attempt(path, [name], partial(_add_state, findings, read, to_state))
    for missing in sorted(set(range(ids[0], ids[-1])) - set(ids)) if ids else []:
        if context.files.status(context.paths.snapshot(missing)) is None:
            reason, name = f"is missing between snapshots {ids[0]} and {ids[-1]}", f"snapshot {missing}{where}"
            findings.faults.append(Fault(FaultKind.GAP, context.paths.snapshot(missing), reason, [name]))
    truths = (ids[-1], ids[0]) if ids else (0, 0)
    hints = (context.paths.latest_hint, context.paths.earliest_hint)
    findings.faults.extend(find_hint_faults(context.engine, zip(hints, truths, strict=True)))


def _list_history(context: TableContext, where: str, findings: Findings) -> tuple[int, ...]:
    """Return the ids of all snapshots except detached ones, which are faults."""
    ids = snapshot_ids(context)
    try:
        detached = {s.id for s in find_detached_snapshots(context)}
    except PaimonError:  # an unreadable snapshot is reported by its own check
        return ids
    for snapshot_id in detached:
        reason = "is not part of the history: its writer crashed after publishing it"
        path, name = context.paths.snapshot(snapshot_id), f"snapshot {snapshot_id}{where}"
        findings.faults.append(Fault(FaultKind.DETACHED, path, reason, [name]))
    return tuple(i for i in ids if i not in detached)


def find_hint_faults(engine: Engine, hints: Iterable[tuple[str, int]]) -> Iterator[Fault]:
    """Yield a fault for each hint, a path with the true id, that is ahead of the truth."""
    for path, truth in hints:
        try:
            hint = parse_hint(engine.files.read(path, HINT_FILE.max_bytes))
        except NotFound:
            continue
        except (StorageError, CorruptTable) as error:
            yield Fault(FaultKind.HINT, path, error.reason)
            continue
        if hint is not None and hint > truth:
            yield Fault(FaultKind.HINT, path, f"names {hint}, but the true id is {truth}")


def _find_tags(context: TableContext, where: str, findings: Findings) -> None:
    for tag in tag_names(context):
        path, name = context.paths.tag(tag), f"tag {tag}{where}"
        read = partial(_read_tag, context, tag)
        to_state = partial(State, context, path=path, name=name, part=ReferencedPart.STATE, is_end=True)
        findings.attempt(path, [name], partial(_add_state, findings, read, to_state))


def _read_tag(context: TableContext, tag: str) -> Snapshot:
    return load_tag(context, tag).snapshot


def _find_changelogs(context: TableContext, where: str, findings: Findings) -> None:
    for changelog_id in list_changelog_ids(context):
        path, name = context.paths.changelog(changelog_id), f"changelog {changelog_id}{where}"
        read = partial(find_changelog, context, changelog_id)
        to_state = partial(State, context, path=path, name=name, part=ReferencedPart.CHANGES, is_end=False)
        findings.attempt(path, [name], partial(_add_state, findings, read, to_state))


def _add_state(findings: Findings, read: Callable[[], Snapshot | None], to_state: Callable[[Snapshot], State]) -> None:
    snapshot = read()
    if snapshot is not None:  # else it expired after the listing
        findings.states.append(to_state(snapshot))


def check_stream_readers(context: TableContext, where: str, findings: Findings) -> None:
    """Check a branch's consumers and changelogs; `where` is appended to states, empty for main."""
    changelogs, snapshots = (
        list_changelog_ids(context),
        snapshot_ids(context),
    )
    _check_gaps(context, where, findings, changelogs, snapshots)
    if changelogs:
        hints = [join_path(context.paths.changelogs, name) for name in ("LATEST", "EARLIEST")]
        truths = (changelogs[-1], changelogs[0])
        findings.faults.extend(find_hint_faults(context.engine, zip(hints, truths, strict=True)))
    last = snapshots[-1] if snapshots else 0
    for name, path in list_consumer_files(context).items():
        findings.attempt(
            path, [f"consumer {name}{where}"], partial(_check_consumer, context, findings, name, path, last)
        )


def _check_gaps(
    context: TableContext, where: str, findings: Findings, ids: Sequence[int], snapshots: Sequence[int]
) -> None:
    if not ids:
        return
    end = max(ids[-1] + 1, snapshots[0] if snapshots else 0)
    for missing in sorted(set(range(ids[0], end)) - set(ids)):
        path = context.paths.changelog(missing)
        possible_paths = (path, context.paths.snapshot(missing))
        if all(context.files.status(place) is None for place in possible_paths):  # else it was written during the check
            reason = f"is missing between changelog {ids[0]} and snapshot {end}: stream readers cannot continue past it"
            findings.faults.append(Fault(FaultKind.GAP, path, reason, [f"changelog {missing}{where}"]))


def _check_consumer(context: TableContext, findings: Findings, name: str, path: str, last: int) -> None:
    next_id = read_consumer(context, name)
    if next_id is None:
        return
    first = find_first_id(context) if last else 1
    if not first <= next_id <= last + 1:
        reason = f"reads snapshot {next_id} next, but only {first} to {last} exist"
        findings.faults.append(Fault(FaultKind.BEHIND, path, reason, [f"consumer {name}"]))
