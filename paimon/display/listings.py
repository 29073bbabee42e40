"""Show snapshots, and the tags, branches and consumers of a table, as a table: on a card, and with `print`.

Invariant: at most `_LISTED` entries are shown. The text of an error replaces an entry that cannot be read.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from paimon.display.notebook import read_or_explain
from paimon.domain.markup import format_time
from paimon.domain.report import Grid, ListingDisplay, Report
from paimon.domain.snapshot.snapshot import Snapshot, Tag
from paimon.domain.text_layout import TextColumn

_LISTED = 20
_NUMBERS = frozenset(("snapshot", "next snapshot", "records", "records added"))


class SnapshotList(ListingDisplay, list[Snapshot]):
    """Snapshots, oldest first; the newest ones are shown."""

    def _report(self) -> Report:
        hidden = max(len(self) - _LISTED, 0)
        notes = (f"and {hidden:,} earlier",) if hidden else ()
        rows = [_describe_entry(snapshot) for snapshot in self[hidden:]]
        return Report("snapshots", f"{len(self):,}", parts=(*_list_rows(rows), *notes))


class EntriesDisplay(ListingDisplay):
    """Mixin for a mapping by name of what a table has: tags, branches or consumers."""

    __slots__ = ()

    def __iter__(self) -> Iterator[str]:
        raise NotImplementedError

    def __getitem__(self, name: str) -> Any:
        raise NotImplementedError

    def _table_name(self) -> str:
        """Return the name of the table."""
        raise NotImplementedError

    def _report(self) -> Report:
        title, kind = self._table_name(), type(self).__name__
        names = read_or_explain(lambda: list(self))
        if isinstance(names, str):
            return Report(title, kind, parts=(names,))
        rows = [{"name": name, **_describe_entry(read_or_explain(partial(self.__getitem__, name)))}
                for name in names[:_LISTED]]  # fmt: skip
        notes = (f"and {len(names) - _LISTED:,} more",) if len(names) > _LISTED else ()
        return Report(title, kind, parts=(*_list_rows(rows), *notes))


def _describe_entry(value: Tag | Snapshot | int | str | None) -> dict[str, str]:
    """Describe the snapshot of a tag or branch, or the next snapshot of a consumer; a text is an error."""
    if isinstance(value, Tag):
        until = "" if value.retained_seconds is None else f"{value.retained_seconds:,g} s"
        return {**_describe_entry(value.snapshot), "retained": until}
    if isinstance(value, Snapshot):
        counts = (value.total_record_count, value.delta_record_count)
        records, added = ("" if count is None else f"{count:,}" for count in counts)
        return {
            "snapshot": str(value.id),
            "kind": value.commit_kind.value,
            "committed": format_time(value.time_millis),
            "records": records,
            "records added": added,
            "user": value.commit_user,
        }
    if isinstance(value, str):
        return {"error": value}
    return {} if value is None else {"next snapshot": str(value)}


def _list_rows(rows: Sequence[dict[str, str]]) -> tuple[Grid | str]:
    """Return the grid of rows, which do not all have the same columns, or a note."""
    if not rows:
        return ("none",)
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns = (TextColumn(name, name in _NUMBERS, tuple(row.get(name, "") for row in rows)) for name in names)
    return (Grid(tuple(column for column in columns if any(column.cells))),)
