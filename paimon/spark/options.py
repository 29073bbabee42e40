"""What the options of the data source mean.

Law: Spark lower-cases option names; those of the format are lower-case already, so everything that is not the source's
own is a dynamic option of the table.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

from paimon.domain.errors import InvalidRequest
from paimon.domain.options.registry import OPTIONS
from paimon.engines import open_table
from paimon.table import Table

ROUTE_COLUMN = "__paimon_route"
"""Helper column that says to which task a row goes; never stored."""

ROUTED = "paimon.routed"
"""Set by `paimon.spark.write`: each bucket's rows come to one task."""


@frozen
class SourceOptions:
    """The options of one read or write."""

    path: str
    table_options: Mapping[str, str]
    allowed_roots: tuple[str, ...]
    routed: bool
    kind_column: str | None
    commit_user: str | None
    commit_identifier: int | None

    def table(self) -> Table:
        """The table, opened now."""
        opened = open_table(self.path, self.table_options, allowed_roots=self.allowed_roots)
        if not isinstance(opened, Table):
            raise InvalidRequest(f"{self.path} is a system table", hint="open it with paimon.open_table(…)")
        return opened


def source_options(options: Mapping[str, str]) -> SourceOptions:
    """Read the options of the data source; InvalidRequest where the path is missing."""
    given = {k.lower(): v for k, v in options.items()}
    path = given.get("path")
    if not path:
        raise InvalidRequest(
            "the paimon source needs the path of a table", subject="path", hint='use .load("…/db.db/table")'
        )
    identifier = given.get("commit-identifier")
    roots = given.get("allowed-roots", "")
    return SourceOptions(
        path=path,
        table_options={k: v for k, v in given.items() if k in OPTIONS and k != "path"},
        allowed_roots=tuple(r for r in roots.split(",") if r),
        routed=given.get(ROUTED, "false") == "true",
        kind_column=given.get("kind-column") or None,
        commit_user=given.get("commit-user") or None,
        commit_identifier=int(identifier) if identifier else None,
    )
