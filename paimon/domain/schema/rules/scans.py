"""Which options `scan.*` a table can follow, and which buckets they select.

Invariant: an option that would change the rows of a read is either followed or refused by name, when the table is
created or altered and again when it is read.
Source: `AbstractBatchTableScan`, `FileStoreTableFactory`, `SchemaValidation.validateFallbackBranch`.
"""

from __future__ import annotations

from paimon.domain.errors import Unsupported
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_stored_options
from paimon.domain.schema.rules.layout import POSTPONED, option_error, read_flag
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.types.data_types import BlobType
from paimon.domain.types.field_ids import all_types

_BLOBS = "blob-as-descriptor"
_CHAIN = "chain-table.enabled"
_POSTPONED_ROWS = "postpone.merge-on-read"


def check_scan_options(schema: TableSchema, options: TableOptions) -> None:
    """Refuse scan options that no read of this table can follow; `options` include the dynamic ones."""
    _check_scan_bucket(schema, options)
    if options.scan_primary_branch and options.scan_fallback_branch:
        raise option_error(
            "scan.primary-branch", "cannot be combined with 'scan.fallback-branch'", "leave out one of them"
        )
    _check_ignored_files(options)
    if schema.primary_keys:
        check_stored_options(options.values, ("sequence.snapshot-ordering",))
    if _BLOBS in options.values and any(
        isinstance(part, BlobType) for column in schema.fields for part in all_types(column.type)
    ):
        check_stored_options(options.values, (_BLOBS,))
    _check_rows_elsewhere(options)


def _check_scan_bucket(schema: TableSchema, options: TableOptions) -> None:
    bucket = options.scan_bucket
    if bucket is not None and (options.bucket < 1 or not schema.primary_keys):
        raise option_error(
            "scan.bucket", "needs a primary key and a fixed number of buckets", "reset the option, or filter the rows"
        )
    if bucket is not None and bucket < 0:
        raise option_error("scan.bucket", f"is {bucket}", "use a bucket number, 0 or higher")


def _check_ignored_files(options: TableOptions) -> None:
    for option, used in (
        ("scan.ignore-lost-files", options.scan_ignore_lost_files),
        ("scan.ignore-corrupt-files", options.scan_ignore_corrupt_files),
    ):
        if used and options.data_evolution_enabled:
            raise Unsupported(f"option {option!r} of a table with data evolution", hint=f"reset {option!r}")


def _check_rows_elsewhere(options: TableOptions) -> None:
    """Refuse options with which a table has rows outside the files that a scan plans."""
    if options.bucket == POSTPONED and read_flag(options, _POSTPONED_ROWS):
        raise Unsupported(
            f"option {_POSTPONED_ROWS!r}", hint="reset the option, and compact the table to read its postponed rows"
        )
    if read_flag(options, _CHAIN):
        raise Unsupported(
            f"option {_CHAIN!r}, with which rows are in other branches", hint="read the table with Java's Paimon"
        )


def select_scanned_buckets(schema: TableSchema, options: TableOptions) -> frozenset[int] | None:
    """Return the bucket of `scan.bucket`, None for all; one that does not exist contains no rows."""
    check_scan_options(schema, options)
    return None if options.scan_bucket is None else frozenset((options.scan_bucket,))
