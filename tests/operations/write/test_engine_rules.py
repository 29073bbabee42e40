"""Which tables of each merge engine are refused, with an error that names what to change; no file of them remains."""

from __future__ import annotations

import pytest
from support.engine_rules import RULES

import paimon
from paimon.domain.errors import InvalidRequest
from paimon.domain.schema.changes import SetColumnType, SetOption
from paimon.domain.types.data_types import VarCharType


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> paimon.Catalog:
    made = paimon.connect(tmp_path_factory.mktemp("rules"))
    made.create_database("d")
    return made


def test_alterations_obey_the_same_rules(catalog: paimon.Catalog) -> None:
    options = {"bucket": "1", "merge-engine": "aggregation"}
    table = catalog.create_table("d.changed", "k INT NOT NULL, a INT, b STRING", primary_keys=["k"], options=options)
    for key, value, words in (
        ("fields.b.aggregate-function", "sum", "STRING"),
        ("fields.default-aggregate-function", "max_by", "not an aggregate function"),
        ("fields.a.default-value", "x", "INT"),
        ("sequence.field", "c", "does not exist"),
    ):
        with pytest.raises(InvalidRequest) as refused:
            table.alter(SetOption(key, value))
        assert words in str(refused.value)
    table.alter(SetOption("fields.a.aggregate-function", "sum"))
    with pytest.raises(InvalidRequest, match="STRING"):
        catalog.table("d.changed").alter(SetColumnType("a", VarCharType()))


@pytest.mark.parametrize("name", RULES)
def test_a_table_is_created_or_refused(catalog: paimon.Catalog, name: str) -> None:
    rule, table = RULES[name], f"d.{''.join(c for c in name if c.isalpha())}"
    options = {"bucket": "1", **rule.options}
    keys = {"primary_keys": list(rule.primary_keys), "partition_keys": list(rule.partition_keys)}
    if rule.words is None:
        made = catalog.create_table(table, rule.columns, **keys, options=options)
        made.write([rule.row], missing_columns="null")
        return
    with pytest.raises(InvalidRequest) as refused:
        catalog.create_table(table, rule.columns, **keys, options=options)
    assert rule.words in str(refused.value)
    assert refused.value.subject
    assert "\n" not in str(refused.value)
    assert table.removeprefix("d.") not in catalog.tables("d")
