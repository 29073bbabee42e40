"""Defaults of columns in Spark's statements: Spark has an expression, and a table stores the text of a literal."""

from __future__ import annotations

from typing import Any

from paimon.domain.errors import Unsupported
from paimon.spark.session_catalog.jvm import Jvm

_CONSTANT = frozenset({"Literal", "Cast", "UnaryMinus"})


def read_default(jvm: Jvm, column: str, sql: str, kind: Any) -> str | None:
    """Return the text of a default of a column of Spark's type `kind`; None for null. Refuse other than literals."""
    parsed = jvm.spark._jsparkSession.sessionState().sqlParser().parseExpression(sql)
    nodes = [parsed]
    for node in nodes:  # grows
        if node.getClass().getSimpleName() not in _CONSTANT:
            hint = "give a literal, whose text the table stores"
            raise Unsupported(f"DEFAULT {sql} of column {column!r}", hint=hint)
        children = node.children()
        nodes += [children.apply(number) for number in range(children.size())]
    text = f"CAST(CAST({sql} AS {kind.sql()}) AS STRING)"
    row = jvm.spark.sql(f"SELECT {text}, is_valid_utf8({text})").first()
    assert row is not None
    if row[1] is False:
        raise Unsupported(f"DEFAULT {sql} of column {column!r}", hint="give bytes that are no text in the INSERT")
    stored: str | None = row[0]
    return stored
