"""Write the CREATE TABLE statement of a table.

Invariant: parsing the statement gives the schema again, up to ids.
"""

from __future__ import annotations

from collections.abc import Sequence

from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.secrets import redact_option
from paimon.domain.types.type_text import format_field, quote_name, quote_text


def format_create_table(name: Sequence[str], schema: TableSchema) -> str:
    """Return a CREATE TABLE statement in Flink's dialect, in several lines and without a semicolon."""
    lines = [f"  {format_field(column)}" for column in schema.fields]
    if schema.primary_keys:
        lines.append(f"  PRIMARY KEY ({_join(schema.primary_keys)}) NOT ENFORCED")
    parts = [f"CREATE TABLE {'.'.join(map(quote_name, name))} (\n" + ",\n".join(lines) + "\n)"]
    if schema.comment:
        parts.append(f"COMMENT {quote_text(schema.comment)}")
    if schema.partition_keys:
        parts.append(f"PARTITIONED BY ({_join(schema.partition_keys)})")
    if schema.options:
        pairs = (
            f"  {quote_text(key)} = {quote_text(redact_option(key, v))}" for key, v in sorted(schema.options.items())
        )
        parts.append("WITH (\n" + ",\n".join(pairs) + "\n)")
    return "\n".join(parts)


def _join(names: Sequence[str]) -> str:
    return ", ".join(map(quote_name, names))
