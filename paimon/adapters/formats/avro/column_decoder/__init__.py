"""Decode many Avro records at the same time as columns, or return None for the row-wise decoder."""

from paimon.adapters.formats.avro.column_decoder.flat_columns import decode_flat_columns, is_flat_worthwhile
from paimon.adapters.formats.avro.column_decoder.manifest_columns import decode_manifest_columns
from paimon.adapters.formats.avro.column_decoder.record_starts import FIXED_BYTES, FlatField, flat_fields

__all__ = [
    "FIXED_BYTES",
    "FlatField",
    "decode_flat_columns",
    "decode_manifest_columns",
    "flat_fields",
    "is_flat_worthwhile",
]
