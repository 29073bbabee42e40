"""The columns that the format itself adds to data files.

Invariant: their names are reserved, and their ids are at the top of the 32-bit range.
Source: `SpecialFields`.
"""

from __future__ import annotations

from attrs import evolve

from paimon.domain.types.data_types import BigIntType, DataField, IntType, TinyIntType, VarCharType

KEY_PREFIX = "_KEY_"
KEY_ID_START = 1_073_741_823
"""The id of a key column is the id of its column plus this number."""

SEQUENCE_NUMBER = DataField(2_147_483_646, "_SEQUENCE_NUMBER", BigIntType(nullable=False))
VALUE_KIND = DataField(2_147_483_645, "_VALUE_KIND", TinyIntType(nullable=False))
LEVEL = DataField(2_147_483_644, "_LEVEL", IntType(nullable=False))
ROW_KIND = DataField(2_147_483_643, "rowkind", VarCharType(nullable=False))
ROW_ID = DataField(2_147_483_642, "_ROW_ID", BigIntType(nullable=False))

TRACKING_FIELDS = (ROW_ID, SEQUENCE_NUMBER)
"""The columns that rows of a table with row tracking have, also where its files do not store them."""
SYSTEM_FIELDS = (SEQUENCE_NUMBER, VALUE_KIND, LEVEL, ROW_KIND, ROW_ID)
_NAMES = frozenset(f.name for f in SYSTEM_FIELDS)


def to_key_field(column: DataField) -> DataField:
    """Return the key column of a data file that repeats this column: the name has the prefix ``_KEY_``."""
    bare = evolve(column, description=None, default_value=None)
    return evolve(bare, id=column.id + KEY_ID_START, name=KEY_PREFIX + column.name)


def is_system_name(name: str) -> bool:
    """Return whether a name is reserved, so that no column of a table may have it."""
    return name.startswith(KEY_PREFIX) or name in _NAMES
