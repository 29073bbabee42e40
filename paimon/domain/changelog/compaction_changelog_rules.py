"""What a compaction must know of a table to write its changelog.

Invariant: two compactions with equal rules and equal records produce equal rows and equal changes.

Source: `LookupMergeTreeCompactRewriter`, `FullChangelogMergeTreeCompactRewriter`, `ValueEqualiserSupplier`.
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import field, frozen

from paimon.domain.merge.merge_engines import is_newest_winning, is_oldest_winning
from paimon.domain.merge.merge_spec import MergeSpec
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.table_schema import TableSchema


def _names(values: Collection[str]) -> frozenset[str]:
    return frozenset(values)


@frozen(hash=False)
class ChangeRules:
    """How records of one key become its row, and which changes are reported."""

    spec: MergeSpec
    # level of the rows before a full compaction; None: smallest level above 0, also by lookup
    top_level: int | None = None
    writes_changelog: bool = True
    # whether an update that changes no column is left out
    skips_equal: bool = False
    # columns that do not count as changed
    ignored: frozenset[str] = field(converter=_names, default=frozenset())
    # whether records above the output are marked as deleted once a newer record is found
    marks_deletions: bool = False
    # whether the file only changes its level, so that a singleton stays as it is
    only_moves_file: bool = False

    @classmethod
    def of(cls, schema: TableSchema, options: TableOptions, top_level: int | None) -> ChangeRules:
        """Return the rules of a primary-key table; `top_level` is set for a full compaction and None for lookups."""
        producer = "lookup" if top_level is None else "full-compaction"
        return cls(
            MergeSpec.of(schema, options),
            top_level,
            writes_changelog=options.changelog_producer == producer,
            skips_equal=options.changelog_row_deduplicate,
            ignored=frozenset(options.changelog_row_deduplicate_ignore_fields),
            marks_deletions=options.deletion_vectors_enabled and top_level is None,
        )

    @property
    def columns_above(self) -> Collection[str] | None:
        """The columns that are read of records above the output; empty: only whether there are any; None: no lookup."""
        if self.merges_above:
            return tuple(f.name for f in self.spec.fields)
        finds_keys = self.top_level is None and (self.marks_deletions or self.oldest_wins)
        return () if finds_keys else None

    @property
    def oldest_wins(self) -> bool:
        """Whether a record above the output replaces all new records of its key."""
        return is_oldest_winning(self.spec.engine)

    @property
    def merges_above(self) -> bool:
        """Whether records above the output take part in merging, or appear in changes."""
        spec = self.spec
        if self.top_level is not None or self.oldest_wins:
            return False
        newest_wins = is_newest_winning(spec.engine) and not spec.sequence_fields and not spec.ignore_delete
        return self.writes_changelog or not newest_wins
