"""Names of columns in statements: any case, with or without the name of the table."""

from __future__ import annotations

import pytest

from paimon.domain.predicate.field_paths import find_column
from paimon.sql.run.expressions import name_columns

COLUMNS = ("Id", "price", "V", "alike", "Alike")


@pytest.mark.parametrize(
    ("name", "found"),
    [("Id", "Id"), ("ID", "Id"), ("PRICE", "price"), ("alike", "alike"), ("ALIKE", None), ("other", None)],
)
def test_a_name_in_another_case_means_the_only_such_column(name: str, found: str | None) -> None:
    assert find_column(name, COLUMNS) == found


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("id = 1 AND PRICE > Price", "Id = 1 AND price > price"),
        ("T.ID = db.t.Id", "Id = Id"),
        ("v.X = 1 AND t.v.x = 2", "V.X = 1 AND V.x = 2"),
        ('"ID" = `price`', '"Id" = `price`'),
        ("'ID' = other.ID", "'ID' = other.ID"),
        ("ID(id) + PRICE ('id')", "ID(Id) + PRICE ('id')"),
        ("ALIKE = alike", "ALIKE = alike"),
        ("id IN (SELECT ID FROM t WHERE T.ID = 1) OR ID = 2", "Id IN (SELECT ID FROM t WHERE T.ID = 1) OR Id = 2"),
    ],
)
def test_expressions_name_columns_as_the_table_does(text: str, expected: str) -> None:
    assert name_columns(text, ("paimon", "db", "t"), COLUMNS) == expected
