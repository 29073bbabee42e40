"""What Java refuses at create, or with the first row, we refuse when the table is made; and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from engine_rules import DIFFERENT, RULES, Rule
from java_paimon import JavaPaimon
from py4j.protocol import Py4JError

from paimon.domain.types.ddl import parse_columns
from paimon.domain.types.json import type_to_json

pytestmark = pytest.mark.interop


def accepts(java: JavaPaimon, directory: Path, rule: Rule) -> bool:
    types = {f.name: type_to_json(f.type) for f in parse_columns(rule.columns)}
    options = {"bucket": "1", **rule.options}
    try:
        java.create(
            directory, types, primary_keys=rule.primary_keys, partition_keys=rule.partition_keys, options=options
        )
        java.write(directory, [rule.row])
    except Py4JError:  # Spark's tests in the same process put their own conversion of Java's errors in the way
        return False
    return True


def test_java_refuses_what_we_refuse(java: JavaPaimon, tmp_path: Path) -> None:
    made = {name: accepts(java, tmp_path / str(i), rule) for i, (name, rule) in enumerate(RULES.items())}
    differ = {name for name, rule in RULES.items() if made[name] != (rule.words is None)}
    assert differ == set(DIFFERENT)
