"""This library refuses at creation exactly what Java refuses at table creation or with the first row."""

from __future__ import annotations

from pathlib import Path

import pytest
from py4j.protocol import Py4JError
from support.engine_rules import DIFFERENT, RULES, Rule
from support.java_paimon import JavaPaimon

from paimon.domain.types.ddl import parse_columns
from paimon.domain.types.type_text import type_to_json

pytestmark = pytest.mark.interop


def accepts(java: JavaPaimon, directory: Path, rule: Rule) -> bool:
    types = {f.name: type_to_json(f.type) for f in parse_columns(rule.columns)}
    options = {"bucket": "1", **rule.options}
    try:
        java.create(
            directory, types, primary_keys=rule.primary_keys, partition_keys=rule.partition_keys, options=options
        )
        java.write(directory, [rule.row])
    except Py4JError:  # Spark's tests in the same process install their own conversion of Java's errors
        return False
    return True


def test_java_refuses_the_same_tables(java: JavaPaimon, tmp_path: Path) -> None:
    made = {name: accepts(java, tmp_path / str(i), rule) for i, (name, rule) in enumerate(RULES.items())}
    differ = {name for name, rule in RULES.items() if made[name] != (rule.words is None)}
    assert differ == set(DIFFERENT)
