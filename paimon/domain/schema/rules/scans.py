"""Which options `scan.*` a table can follow, and which buckets they select.

Invariant: an option that would change the rows of a read is either followed or refused by name, when the table is
created or altered and again when it is read.
Source: `AbstractBatchTableScan`, `FileStoreTableFactory`, `SchemaValidation.validateFallbackBranch`.
"""

from __future__ import annotations

from paimon.domain.errors import Unsupported
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_stored_options
from paimon.domain.schema.rules.layout import POSTPONED, flag, refuse
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import BlobType
from paimon.domain.types.walk import all_types

_CHAIN = "chain-table.enabled"
_POSTPONED_ROWS = "postpone.merge-on-read"


def check_scan_options(schema: TableSchema, options: TableOptions) -> None:
    """Refuse options that no read of this table could follow.

    Parameters
    ----------
    schema : TableSchema
        The schema of the table.
    options : TableOptions
        Its options, dynamic ones included.

    Raises
    ------
    InvalidRequest
        Options that contradict the table or each other.
    Unsupported
        Options of Java that this library does not follow.
    """
    bucket = options.scan_bucket
    if bucket is not None and (options.bucket < 1 or not schema.primary_keys):
        raise refuse("scan.bucket", "needs a primary key and a number of buckets", "reset it, or filter the rows")
    if bucket is not None and bucket < 0:
        raise refuse("scan.bucket", f"is {bucket}", "give the number of a bucket, from 0 on")
    if options.scan_primary_branch and options.scan_fallback_branch:
        raise refuse("scan.primary-branch", "does not go with 'scan.fallback-branch'", "keep one of them")
    for option, used in (
        ("scan.ignore-lost-files", options.scan_ignore_lost_files),
        ("scan.ignore-corrupt-files", options.scan_ignore_corrupt_files),
    ):
        if used and options.data_evolution_enabled:
            raise Unsupported(f"option {option!r} of a table with data evolution", hint=f"reset {option!r}")
    if schema.primary_keys:
        check_stored_options(options.values, ("sequence.snapshot-ordering",))
    if any(isinstance(part, BlobType) for column in schema.fields for part in all_types(column.type)):
        check_stored_options(options.values, ("blob-as-descriptor",))
    if options.bucket == POSTPONED and flag(options, _POSTPONED_ROWS):
        raise Unsupported(f"option {_POSTPONED_ROWS!r}", hint="reset it, or compact the table with Java's Paimon")
    if flag(options, _CHAIN):
        raise Unsupported(
            f"option {_CHAIN!r}, by which rows lie in other branches", hint="read the table with Java's Paimon"
        )


def scanned_buckets(schema: TableSchema, options: TableOptions) -> frozenset[int] | None:
    """Return the buckets that a read is restricted to by `scan.bucket`.

    Parameters
    ----------
    schema : TableSchema
        The schema of the table.
    options : TableOptions
        Its options, dynamic ones included.

    Returns
    -------
    frozenset of int or None
        The bucket; None for all. A bucket that does not exist holds no rows.

    Raises
    ------
    InvalidRequest, Unsupported
        See `check_scan_options`.
    """
    check_scan_options(schema, options)
    return None if options.scan_bucket is None else frozenset((options.scan_bucket,))
