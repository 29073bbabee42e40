"""The table of verbs: a verb has the same result through each door, and the parameters of what is written by hand."""

from __future__ import annotations

import inspect
import json
import os
import re
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args, get_type_hints

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import paimon
import paimon.spark
from paimon.cli.main import main
from paimon.maintain import Maintain
from paimon.references import Branches, Consumers, Tags
from paimon.verbs.arguments import complete_arguments, parse_partitions
from paimon.verbs.verb import Confirmation, Parameter, Type, Verb
from paimon.verbs.verb_table import COMMAND_GROUPS, PROCEDURES, VERBS

CLASSES: Mapping[str, type] = {
    "Branches": Branches, "Catalog": paimon.Catalog, "Consumers": Consumers, "Maintain": Maintain,
    "Table": paimon.Table, "Tags": Tags,
}  # fmt: skip
ARGUMENTS: Mapping[str, Mapping[str, Any]] = {
    "maintain": {"full": True},
    "compact": {"compact_strategy": "full"},
    "rescale": {"buckets": 2},
    "get_tag": {"name": "one"},
    "create_tag": {"name": "new", "snapshot": 4, "time_retained": "3 d"},
    "create_tag_from_timestamp": {"name": "new", "since": "2020-01-01"},
    "create_tag_from_watermark": {"name": "new", "watermark": 7},
    "replace_tag": {"name": "one", "snapshot": 5},
    "rename_tag": {"name": "one", "to": "uno"},
    "delete_tag": {"names": "one"},
    "create_branch": {"name": "new", "tag": "one"},
    "rename_branch": {"name": "trial", "to": "new"},
    "delete_branch": {"name": "trial"},
    "fast_forward": {"name": "trial"},
    "reset_consumer": {"name": "slow", "next_snapshot": 5},
    "delete_consumer": {"name": "slow"},
    "clear_consumers": {"including": "s.*"},
    "expire_consumers": {"older_than": "2999-01-01"},
    "expire_snapshots": {"retain_max": 2, "retain_min": 1},
    "expire_changelogs": {"delete_all": True},
    "expire_tags": {"older_than": "0 ms"},
    "expire_partitions": {"age": "1 d"},
    "remove_orphan_files": {"older_than": "2020-01-01", "dry_run": False},
    "analyze": {"columns": "id,day"},
    "rollback": {"snapshot": 5},
    "rollback_to_timestamp": {"timestamp": "2999-01-01"},
    "rollback_to_watermark": {"watermark": 5},
    "create_global_index": {"index_column": "id", "options": "btree-index.block-size=1kb"},
    "drop_global_index": {"index_column": "day"},
    "drop_partition": {"partitions": "day=20200101"},
    "mark_partition_done": {"partitions": "day=20200101"},
    "compact_database": {"including_tables": "shop.t", "compact_strategy": "minor"},
    "repair": {"name": "shop.t"},
    "remove_unexisting_files": {"dry_run": True},
    "remove_unexisting_manifests": {"dry_run": True},
    "repair_earliest_snapshot": {"snapshot_id": 3},
    "clone": {"database": "shop", "table": "t", "target_table": "u", "snapshot": 5},
    "copy": {"source": "shop.t", "target": "new.t", "tag": "one"},
    "migrate_table": {"source": "memory://verbs-files", "target": "shop.m", "format": "parquet"},
}
"""Arguments with which a verb does something; a verb without a line takes its defaults."""
TRACKED = {"create_global_index", "drop_global_index"}
"""Verbs of tables with data evolution."""
ONLY_METHODS = {
    "Branches.create": {"exist_ok"}, "Maintain.health": {"observed"}, "Table.compact": {"full"},
    "Table.drop_partitions": {"missing_ok"},
}  # fmt: skip
"""Parameters that the method of a verb has alone. `compact_strategy` stands for `full`."""
OTHER_DEFAULTS = {
    ("remove_orphan_files", "dry_run"), ("remove_unexisting_files", "dry_run"),
    ("remove_unexisting_manifests", "dry_run"), ("reset_consumer", "next_snapshot"), ("drop_partition", "partitions"),
}  # fmt: skip
"""Java's procedures delete, where our methods list or need a value."""
RUN_ON = {"table", "target", "spark", "options"}
"""Parameters of `paimon.spark` that say where the work runs."""


@pytest.fixture(scope="module")
def warehouse(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A warehouse with a table on which each verb has something to do."""
    path = tmp_path_factory.mktemp("verbs") / "lake"
    catalog = paimon.connect(path)
    catalog.create_database("shop")
    options = {"bucket": "1", "partition.timestamp-formatter": "yyyyMMdd", "changelog-producer": "input",
               "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "4",
               "changelog.num-retained.min": "5", "changelog.num-retained.max": "9"}  # fmt: skip
    table = catalog.create_table(
        "shop.t", "id INT NOT NULL, day STRING NOT NULL", primary_keys=["id", "day"], partition_keys=["day"],
        options=options,
    )  # fmt: skip
    for number in range(6):
        table.write([{"id": number, "day": "20200101" if number % 2 else "29990101"}], watermark=number + 2)
    tracking = {"row-tracking.enabled": "true", "data-evolution.enabled": "true"}
    tracked = catalog.create_table("shop.tracked", "id INT, day STRING", options=tracking)
    tracked.write([{"id": 1, "day": "20200101"}])
    tracked.maintain.create_global_index("day")
    table.tags.create("one", 5)
    table.branches.create("trial", "one")
    table.consumers.reset("slow", 6)
    orphan = path / "shop.db" / "t" / "manifest" / "manifest-orphan"
    orphan.write_bytes(b"orphan")
    with fsspec.filesystem("memory").open("/verbs-files/day=1/a", "wb") as file:
        pq.write_table(pa.table({"id": [1]}), file)
    os.utime(orphan, (1, 1))
    return path


@pytest.mark.parametrize("verb", VERBS, ids=[verb.name for verb in VERBS])
def test_a_verb_has_one_result_through_all_doors(
    verb: Verb[Any], warehouse: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ARGUMENTS.get(verb.name, {})
    assert given.keys() <= {parameter.name for parameter in verb.parameters}

    def open_copy(door: str) -> paimon.Catalog:
        """Return a copy of the warehouse, which has the same state for each door."""
        left_out = None if verb.name in TRACKED else shutil.ignore_patterns("tracked")
        return paimon.connect(shutil.copytree(warehouse, tmp_path / door, ignore=left_out))

    name = "tracked" if verb.name in TRACKED else "t"
    catalog = open_copy("function")
    converted = {p.name: _convert(p, given[p.name]) for p in verb.parameters if p.name in given}
    target = catalog if verb.of_catalog else catalog.table(f"shop.{name}")
    result = verb.run(target, *complete_arguments(verb, converted))
    rows, records, state = verb.to_arrow(result), verb.to_records(result), _describe_state(catalog)

    if verb.in_call:
        named = {p.call_name: given[p.name] for p in verb.parameters if p.name in given}
        texts = [f"{name} => {_format_literal(value)}" for name, value in named.items()]
        catalog = open_copy("statement")
        table = [] if verb.of_catalog else [f"table => 'shop.{name}'"]
        called = catalog.sql(f"CALL sys.{verb.name}({', '.join(table + texts)})").to_arrow()
        assert _normalize(called.to_pylist()) == _normalize(rows.to_pylist())
        assert (called.schema.names, _describe_state(catalog)) == (rows.schema.names, state)
    if verb.name in PROCEDURES:
        catalog = open_copy("method")
        called = catalog.table(f"shop.{name}").call(f"sys.{verb.name}", **named)
        assert _normalize(called.to_pylist()) == _normalize(rows.to_pylist())
        assert (called.schema, _describe_state(catalog)) == (rows.schema, state)
    if verb.command is not None:
        catalog = open_copy("terminal")
        place = str(tmp_path / "terminal") if verb.of_catalog else str(tmp_path / "terminal" / "shop.db" / name)
        assert main([*verb.command.words.split(), place, *_list_words(verb, given), "--output", "json"]) == 0
        printed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
        if verb.name == "fsck":
            printed = printed[0]["faults"]
        if verb.name == "expire_partitions":  # the columns of partitions are those of the table
            printed = [{"partition": "/".join(f"{k}={v}" for k, v in spec.items())} for spec in printed]
        expected = [{key.replace(" ", "_"): value for key, value in record.items()} for record in records]
        assert _normalize(printed) == _normalize(expected)
        assert _describe_state(catalog) == state


def _convert(parameter: Parameter, value: Any) -> object:
    match parameter.type:
        case Type.NAMES:
            return value.split(",")
        case Type.PARTITIONS:
            return parse_partitions(value)
        case _:
            return value


def _format_literal(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value).lower()


def _list_words(verb: Verb[Any], given: Mapping[str, Any]) -> list[str]:
    """Return the words of the command for the arguments."""
    assert verb.command is not None
    words = [] if verb.command.confirmation is Confirmation.NEVER else ["--yes"]
    for parameter in verb.parameters:
        flag = parameter.flag
        if flag is None or parameter.name not in given:
            continue
        spelling = (flag.names or f"--{parameter.name.replace('_', '-')}").split()[-1]
        value = given[parameter.name]
        if flag.is_positional:
            words.append(str(value))
        elif flag.metavar is None:
            words += [spelling] if value == flag.value else []
        else:
            words += [spelling, str(value)]
    return words


def _normalize(rows: list[dict[str, Any]]) -> str:
    """Return rows as text, without what differs between two copies: their folder, and times of files and tags."""
    text = json.dumps([{k: v for k, v in row.items() if k not in ("created", "modified")} for row in rows], default=str)
    return re.sub(r'"[^"]*/(function|statement|method|terminal)/', '"', text)


def _describe_state(catalog: paimon.Catalog) -> object:
    table = catalog.table("shop.t")
    ids = [snapshot.id for snapshot in table.snapshots()]
    return ids, list(table.tags), dict(table.consumers), list(table.branches), table.scan().count()


TYPES = {Type.TEXT: {str}, Type.INTEGER: {int}, Type.BOOLEAN: {bool}, Type.TIME: {int, str}}


@pytest.mark.parametrize("verb", VERBS, ids=[verb.name for verb in VERBS])
def test_a_function_has_the_parameters_of_its_verb(verb: Verb[Any]) -> None:
    hints = get_type_hints(verb.run)
    first, *others = inspect.signature(verb.run).parameters.values()
    assert first.name == ("catalog" if verb.of_catalog else "table")
    assert [p.name for p in others] == [p.name for p in verb.parameters]
    assert all(p.default is inspect.Parameter.empty for p in others)
    for parameter in verb.parameters:
        hint = hints[parameter.name]
        types = set(get_args(hint)) - {type(None)} if type(None) in get_args(hint) else {hint}
        assert types == TYPES.get(parameter.type, types), parameter.name
        if parameter.default is None and not parameter.required:
            assert type(None) in get_args(hint), parameter.name


METHODS = [verb for verb in VERBS if verb.method is not None]


@pytest.mark.parametrize("verb", METHODS, ids=[verb.name for verb in METHODS])
def test_a_method_has_the_parameters_of_its_verb(verb: Verb[Any]) -> None:
    name = str(verb.method)
    method = getattr(CLASSES[name.partition(".")[0]], name.partition(".")[2])
    _, *own = inspect.signature(method).parameters.values()
    declared = {p.name: p for p in verb.parameters if p.in_method}
    assert {p.name for p in own} == declared.keys() | ONLY_METHODS.get(name, set())
    for parameter in own:
        if parameter.name in declared and (verb.name, parameter.name) not in OTHER_DEFAULTS:
            other = declared[parameter.name]
            expected = inspect.Parameter.empty if other.required else other.default
            assert parameter.default == expected, parameter.name


def test_functions_of_spark_have_the_parameters_of_the_methods() -> None:
    pairs = [(verb.spark, str(verb.method)) for verb in VERBS if verb.spark is not None]
    assert len(pairs) == 6
    for spark, name in pairs:
        method = Maintain.run_due if spark == "maintain" else getattr(CLASSES[name.split(".")[0]], name.split(".")[1])
        _, *own = inspect.signature(method).parameters.values()
        distributed = inspect.signature(getattr(paimon.spark, spark)).parameters.values()
        shared = [p for p in distributed if p.name not in RUN_ON]
        assert [(p.name, p.default, p.kind) for p in shared] == [(p.name, p.default, p.kind) for p in own], spark


def test_every_command_of_a_group_is_a_verb() -> None:
    words = [verb.command.words for verb in VERBS if verb.command is not None]
    assert len(set(words)) == len(words)
    for group in COMMAND_GROUPS:
        listed = group.help.rpartition(": ")[2].split(", ") if ": " in group.help else []
        assert not listed or listed == [text.split()[1] for text in words if text.startswith(f"{group.name} ")]
