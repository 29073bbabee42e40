"""The sequence groups of the partial-update engine: columns that have a sequence of their own.

Invariant: a column is in at most one group. A group is ordered by all its sequence fields together, nulls first.

Source: `PartialUpdateMergeFunction.Factory`.
"""

from __future__ import annotations

from attrs import frozen

from paimon.domain.options.parse import parse_list
from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.rules.merge import field_options


@frozen
class SequenceGroup:
    """A sequence group: columns of a partial-update table that have a sequence of their own."""

    sequence: tuple[str, ...]
    # the columns of the group that are not sequence fields
    members: tuple[str, ...]
    # whether a -D in order removes the complete row
    removes: bool = False


def parse_sequence_groups(options: TableOptions) -> tuple[SequenceGroup, ...]:
    """Return the groups that the options define."""
    removing = {*options.partial_update_remove_record_on_sequence_group}
    return tuple(
        SequenceGroup(sequence, parse_list(value), bool(removing & {*sequence}))
        for _, sequence, value in field_options(options, "sequence-group")
    )
