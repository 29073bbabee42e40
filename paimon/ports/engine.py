"""Engine: all ports that an operation may use, as one value.

Invariant: operations get every effect from an Engine argument. An embedder builds an Engine from its own ports.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any

from attrs import evolve, field, frozen

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.ports.cache import ObjectCache
from paimon.ports.callbacks import CommitCallback
from paimon.ports.catalogs import TableStore
from paimon.ports.commit_groups import CommitGroups
from paimon.ports.effects import Clock, Ids, NoProcessEffects, ProcessEffects, Random
from paimon.ports.executor import Executor
from paimon.ports.expressions import ExpressionEvaluator
from paimon.ports.files import FileIO
from paimon.ports.formats import FormatIO, RecordIO
from paimon.ports.key_stores import KeyStores
from paimon.ports.observer import Observer
from paimon.ports.queries import QueryEngine
from paimon.ports.reports import ReportSender
from paimon.ports.row_files import RowFiles
from paimon.ports.snapshots import SnapshotCommit
from paimon.ports.temp import TempStore


@frozen
class MemoryBudget:
    """The memory limit that all buffers of one operation share.

    Attributes
    ----------
    bytes : int
        The limit in bytes. Operations spill rows to disk when it is used up.
    tasks : int
        How many tasks the executor runs in this process at the same time. They share the limit.
    leaves_threads : bool
        Whether this budget is that of fewer tasks than the executor runs, so that a task may use further threads.
    """

    bytes: int = 512 * 1024 * 1024
    tasks: int = 1
    leaves_threads: bool = True

    def share(self, tasks: int) -> MemoryBudget:
        """Return the budget of each of several tasks that run at the same time, as far as the executor allows."""
        concurrent = max(1, min(self.tasks, tasks))
        return MemoryBudget(self.bytes // concurrent, self.tasks, concurrent == 1 or concurrent < self.tasks)


@frozen(eq=False)
class _FileFormats(Collection[str]):
    """The names of formats, which are listed only where an unknown name is looked up or reported."""

    _formats: Mapping[str, FormatIO]

    def __contains__(self, name: object) -> bool:
        return name != "blob" and name in self._formats

    def __iter__(self) -> Iterator[str]:
        return (name for name in self._formats if name != "blob")

    def __len__(self) -> int:
        return sum(1 for _ in self)


@frozen(eq=False)
class Engine:
    """The ports of the library and one memory budget.

    An engine is immutable and safe to use from several threads, as far as its ports are. `attrs.evolve` replaces single
    ports. An engine with a recipe can be pickled.

    Attributes
    ----------
    files : FileIO
        The storage of tables.
    formats : mapping of str to FormatIO
        The formats of data files by format name: ``"parquet"``, ``"orc"``, ``"avro"``, and your own. Tables may have
        these formats and no others. ``"blob"`` is for the files of BLOB columns.
    records : RecordIO
        Reads and writes manifests and manifest lists.
    snapshots : SnapshotCommit
        Publishes snapshots.
    clock : Clock
        The current time and the local time zone.
    ids : Ids
        Unique names of files.
    random : Random
        Jitter of the waits between retries.
    executor : Executor
        Runs independent tasks, one per split or bucket.
    temp : TempStore
        Local disk space for spilled rows and lookup files.
    observer : Observer
        Receives progress and metrics.
    cache : ObjectCache
        Decoded metadata files. It belongs to this engine, because other engines may read other storages.
    memory : MemoryBudget
        The memory limit of one operation.
    tables : TableStore, optional
        The catalog that keeps a copy of table properties, and is called after each schema change. None if the schema
        files are the only copy.
    callbacks : mapping of str to CommitCallback
        Called after each commit, by name. They are not pickled: the process that commits calls them.
    recipe : (callable, tuple), optional
        A picklable function and its arguments that build an equal engine in another process. They contain no secrets.
        None if the engine cannot be pickled.
    key_stores : KeyStores, optional
        Indexes of primary keys for writers of cross-partition tables. None: blocks in `temp`.
    process : ProcessEffects
        Settings of the whole process that operations change for a short time. The default changes none.
    expressions : ExpressionEvaluator, optional
        Computes scalar SQL expressions. None: only what the core computes itself is accepted.
    queries : QueryEngine, optional
        Runs the queries of SQL statements. None: such statements are refused.
    allowed_roots : tuple of str
        Directories and URLs outside of tables that may contain their data files.
    reports : ReportSender, optional
        Reports that a partition is done to an HTTP server. None: the action ``http-report`` is refused.
    row_files : RowFiles, optional
        Opens the files of rows that writes and SQL statements name. None: such files are refused.
    commit_groups : CommitGroups, optional
        Lets additions of concurrent threads share a snapshot. None: each commit makes its own.
    """

    files: FileIO
    formats: Mapping[str, FormatIO]
    records: RecordIO
    snapshots: SnapshotCommit
    clock: Clock
    ids: Ids
    random: Random
    executor: Executor
    temp: TempStore
    observer: Observer
    cache: ObjectCache
    memory: MemoryBudget = MemoryBudget()
    tables: TableStore | None = None
    callbacks: Mapping[str, CommitCallback] = field(factory=dict, repr=False)
    recipe: tuple[Callable[..., Engine], tuple[Any, ...]] | None = field(default=None, repr=False)
    process: ProcessEffects = field(factory=NoProcessEffects)
    key_stores: KeyStores | None = None
    expressions: ExpressionEvaluator | None = None
    queries: QueryEngine | None = None
    reports: ReportSender | None = None
    allowed_roots: tuple[str, ...] = ()
    row_files: RowFiles | None = None
    commit_groups: CommitGroups | None = None

    def __reduce__(self) -> tuple[Callable[..., Engine], tuple[Any, ...]]:
        if self.recipe is None:
            raise InvalidRequest("Engine cannot be pickled without a recipe", hint="set the field recipe")
        return self.recipe

    @property
    def file_formats(self) -> Collection[str]:
        """The names that `file.format` of a table may have: those of `formats` without ``"blob"``."""
        return _FileFormats(self.formats)

    def format(self, name: str) -> FormatIO:
        """Return the format of a name.

        Parameters
        ----------
        name : str
            The format name in lower case.

        Returns
        -------
        FormatIO
            The entry of `formats`.

        Raises
        ------
        Unsupported
            The engine has no such format.
        """
        found = self.formats.get(name)
        if found is None:
            known = ", ".join(sorted(self.formats))
            hint = f"known formats are {known}; install the package that offers it, or give it to the engine"
            raise Unsupported(f"file format {name!r}", hint=hint)
        return found


def with_callbacks(engine: Engine, callbacks: Iterable[CommitCallback | Mapping[str, CommitCallback]]) -> Engine:
    """Return the engine with these commit callbacks in addition to its own.

    Parameters
    ----------
    engine : Engine
        The engine, which stays unchanged.
    callbacks : Iterable[CommitCallback | Mapping[str, CommitCallback]]
        Callables, or mappings of names to callables. A callable that is not in a mapping is registered under its
        qualified name.

    Returns
    -------
    Engine
        The engine with all callbacks.
    """
    named = dict(engine.callbacks)
    for callback in callbacks:
        named |= callback if isinstance(callback, Mapping) else {_derive_name(callback): callback}
    return evolve(engine, callbacks=named)


def _derive_name(callback: CommitCallback) -> str:
    if not callable(callback):
        raise InvalidRequest(
            f"Callback {callback!r} is not callable", subject="callbacks", hint="pass a function of one event"
        )
    name = getattr(callback, "__qualname__", type(callback).__qualname__)
    named = f"{getattr(callback, '__module__', '')}.{name}"
    return f"{named}@{id(callback):x}" if "<" in name else named
