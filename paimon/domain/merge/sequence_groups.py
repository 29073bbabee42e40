"""The sequence groups of the partial-update engine: columns that only a record in order of its own may change.

Law: a column is in one group at most; a group is ordered by its sequence fields together, nulls first.
Source: `PartialUpdateMergeFunction.Factory`.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.options.parse import parse_list
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.rules.merge import field_options


@frozen
class SequenceGroup:
    """One group: the fields that order it, its other columns, and whether a -D in order removes the whole row."""

    sequence: tuple[str, ...]
    members: tuple[str, ...]
    removes: bool = False


def sequence_groups(options: TableOptions) -> tuple[SequenceGroup, ...]:
    """The groups that the options define."""
    removing = {*options.partial_update_remove_record_on_sequence_group}
    return tuple(
        SequenceGroup(sequence, parse_list(value), bool(removing & {*sequence}))
        for _, sequence, value in field_options(options, "sequence-group")
    )
