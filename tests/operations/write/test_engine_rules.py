"""What tables of every merge engine are refused for, in words that say what to change; nothing is left of them."""

from __future__ import annotations

import pytest
from engine_rules import RULES

import paimon
from paimon.domain.errors import InvalidRequest
from paimon.domain.schema.changes import SetColumnType, SetOption
from paimon.domain.types.data_types import VarCharType


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> paimon.Catalog:
    made = paimon.connect(tmp_path_factory.mktemp("rules"))
    made.create_database("d")
    return made


def test_changes_are_held_to_the_same_rules(catalog: paimon.Catalog) -> None:
    options = {"bucket": "1", "merge-engine": "aggregation"}
    table = catalog.create_table("d.changed", "k INT NOT NULL, a INT, b STRING", primary_keys=["k"], options=options)
    for key, value, words in (
        ("fields.b.aggregate-function", "sum", "STRING"),
        ("fields.default-aggregate-function", "max_by", "no aggregate function"),
        ("fields.a.default-value", "x", "INT"),
        ("sequence.field", "c", "no column"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            table.alter(SetOption(key, value))
        assert words in str(refused.value)
    table.alter(SetOption("fields.a.aggregate-function", "sum"))
    with pytest.raises(InvalidRequest, match="STRING"):
        catalog.table("d.changed").alter(SetColumnType("a", VarCharType()))


@pytest.mark.parametrize("name", RULES)
def test_a_table_is_made_or_refused(catalog: paimon.Catalog, name: str) -> None:
    rule, table = RULES[name], f"d.{''.join(c for c in name if c.isalpha())}"
    options = {"bucket": "1", **rule.options}
    keys = {"primary_keys": list(rule.primary_keys), "partition_keys": list(rule.partition_keys)}
    if rule.words is None:
        made = catalog.create_table(table, rule.columns, **keys, options=options)
        made.write([rule.row])
        return
    with pytest.raises(InvalidRequest) as refused:
        catalog.create_table(table, rule.columns, **keys, options=options)
    assert rule.words in str(refused.value)
    assert refused.value.subject
    assert "\n" not in str(refused.value)
    assert table.removeprefix("d.") not in catalog.tables("d")
