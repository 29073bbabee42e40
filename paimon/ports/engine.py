"""Engine: all ports that an operation may use, as one value.

Law: operations get every effect from an Engine argument; whoever embeds the library brings its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from attrs import field, frozen

from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.ports.cache import ObjectCache
from paimon.ports.callbacks import CommitCallback
from paimon.ports.catalogs import TableStore
from paimon.ports.effects import Clock, Ids, Random
from paimon.ports.executor import Executor
from paimon.ports.files import FileIO
from paimon.ports.formats import FormatIO, RecordIO
from paimon.ports.observer import Observer
from paimon.ports.snapshots import SnapshotCommit
from paimon.ports.temp import TempStore


@frozen
class MemoryBudget:
    """Bytes that all buffers of one operation share."""

    bytes: int = 512 * 1024 * 1024


@frozen(eq=False)
class Engine:
    """The ports; `formats` by identifier (``"parquet"``, ``"orc"``, ``"avro"``).

    `recipe` is a picklable function and its arguments that build such an engine in another process; an engine without
    one does not travel. `callbacks` (by name) stay behind when it does: they are called where a commit is made.
    `tables` is the catalog that keeps what schemas say, where one does: it is told of each change.
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

    def __reduce__(self) -> tuple[Callable[..., Engine], tuple[Any, ...]]:
        if self.recipe is None:
            raise InvalidRequest("this engine cannot travel to another process", hint="give it a recipe")
        return self.recipe

    def format(self, identifier: str) -> FormatIO:
        """The format of this identifier; Unsupported where the engine has none."""
        found = self.formats.get(identifier)
        if found is None:
            raise Unsupported(f"file format {identifier!r}", hint=f"known are {', '.join(sorted(self.formats))}")
        return found
