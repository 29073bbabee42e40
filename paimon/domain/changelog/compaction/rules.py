"""What a compaction that tells changes must know of a table.

Law: two compactions with equal rules of equal records make equal rows and equal changes. Source:
`LookupMergeTreeCompactRewriter`, `FullChangelogMergeTreeCompactRewriter`, `ValueEqualiserSupplier`.
"""

from __future__ import annotations

from collections.abc import Collection

from attrs import field, frozen

from paimon.domain.merge.spec import MergeSpec
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.table_schema import TableSchema

FIRST_ROW = "first-row"


def _names(values: Collection[str]) -> frozenset[str]:
    return frozenset(values)


@frozen(hash=False)
class ChangeRules:
    """How records of one key become its row, and what is told of that.

    Parameters
    ----------
    spec : MergeSpec
        The table's merge.
    top_level : int, optional
        The level whose records are the rows before (a full compaction); None: the rows before are those of the
        smallest level above 0, looked up above the output where the compacted files have none.
    tells : bool
        Changes are asked for.
    skips_equal : bool
        An update that changes nothing is not told.
    ignored : frozenset of str
        Columns that do not count as changed.
    marks : bool
        Records above the output are marked as deleted once a newer one is found.
    moves : bool
        The file of the records only moves: what a lone record holds is what stays.
    """

    spec: MergeSpec
    top_level: int | None = None
    tells: bool = True
    skips_equal: bool = False
    ignored: frozenset[str] = field(converter=_names, default=frozenset())
    marks: bool = False
    moves: bool = False

    @classmethod
    def of(cls, schema: TableSchema, options: TableOptions, top_level: int | None) -> ChangeRules:
        """The rules of a primary-key table, for lookups, or (with the top level) for full compactions."""
        producer = "lookup" if top_level is None else "full-compaction"
        return cls(
            MergeSpec.of(schema, options),
            top_level,
            tells=options.changelog_producer == producer,
            skips_equal=options.changelog_row_deduplicate,
            ignored=frozenset(options.changelog_row_deduplicate_ignore_fields),
            marks=options.deletion_vectors_enabled and top_level is None,
        )

    @property
    def columns_above(self) -> Collection[str] | None:
        """What is needed of the records above the output; empty: whether there are any; None: nothing at all."""
        if self.merges_above:
            return tuple(f.name for f in self.spec.fields)
        return () if self.top_level is None and (self.marks or self.spec.engine == FIRST_ROW) else None

    @property
    def merges_above(self) -> bool:
        """Whether records above the output take part in merging, or are told of."""
        spec = self.spec
        if self.top_level is not None or spec.engine == FIRST_ROW:
            return False
        newest_wins = spec.engine == "deduplicate" and not spec.sequence_fields and not spec.ignore_delete
        return self.tells or not newest_wins
