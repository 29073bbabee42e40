"""Each known option is implemented, refused by name, or listed as accepted without effect, with the reason."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from support.option_behaviour import TESTS_OF_OPTIONS

import paimon
from paimon.domain.errors import InvalidRequest, Unsupported
from paimon.domain.options.known_options import FAMILIES, OPTIONS
from paimon.domain.options.option import Effect, Kind, Option
from paimon.domain.options.setting import Setting
from paimon.domain.options.table_options import TableOptions
from paimon.domain.options.validate import check_options, is_default

PACKAGE = Path(paimon.__file__).parent
TESTS = Path(__file__).parents[1]
OF_TABLES = [option for option in OPTIONS.values() if not option.catalog]
REFUSED = [option for option in OF_TABLES if option.effect is Effect.REFUSED]
IMPLEMENTED = [option.key for option in OPTIONS.values() if option.effect is Effect.IMPLEMENTED]
_VALUES = {
    Kind.TEXT: "x", Kind.INT: "7", Kind.LONG: "7", Kind.DOUBLE: "0.5", Kind.MEMORY: "7 mb", Kind.DURATION: "7 min",
    Kind.NAMES: "k",
}  # fmt: skip


def other_value(option: Option) -> str:
    """Return a well-formed value that is not the default."""
    if option.kind is Kind.CHOICE:
        return next(value for value in option.choices if value != option.default)
    if option.kind is Kind.BOOL:
        return "false" if option.default == "true" else "true"
    return _VALUES[option.kind]


def sources() -> str:
    """Return the code outside the registry and the support for tests, and the methods of `TableOptions`."""
    outside = [
        path.read_text()
        for path in sorted(PACKAGE.rglob("*.py"))
        if "options" not in path.relative_to(PACKAGE).parts[:-1] and path.relative_to(PACKAGE).parts[0] != "testing"
    ]
    own = (PACKAGE / "domain" / "options" / "table_options.py").read_text()
    return "\n".join((*outside, own[own.index("    @classmethod") :]))


def test_every_implemented_option_is_read_by_code() -> None:
    code = sources()
    settings: dict[str, list[str]] = {}
    for name, setting in vars(TableOptions).items():
        if isinstance(setting, Setting):
            settings.setdefault(setting.key, []).append(name)
    unread = [
        key
        for key in IMPLEMENTED
        if f'"{key}"' not in code and not any(re.search(rf"\.{name}\b", code) for name in settings.get(key, ()))
    ]
    assert unread == []


def test_every_implemented_option_has_a_test_of_its_behaviour() -> None:
    assert set(TESTS_OF_OPTIONS) == set(IMPLEMENTED)


def test_the_listed_tests_exist() -> None:
    listed = {test.split()[0] for test in TESTS_OF_OPTIONS.values()}
    defined = set()
    for file in {test.partition("::")[0] for test in listed}:
        tree = ast.parse((TESTS / file).read_text())
        defined |= {f"{file}::{node.name}" for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert sorted(listed - defined) == []


@pytest.mark.parametrize("option", REFUSED, ids=lambda option: option.key)
def test_a_refused_option_is_refused_by_name(option: Option, tmp_path: Path) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    value = other_value(option)
    keyed = catalog.create_table("d.t", "k INT NOT NULL", primary_keys=["k"], options={"bucket": "1"})
    named = re.escape(repr(option.key))
    with pytest.raises(Unsupported, match=named) as refused:
        catalog.create_table("d.new", "k INT NOT NULL", options={option.key: value})
    assert refused.value.hint == option.reason
    with pytest.raises(Unsupported, match=named):
        keyed.alter(paimon.SetOption(option.key, value))
    with pytest.raises(Unsupported, match=named):
        keyed.with_options({option.key: value})
    with pytest.raises(Unsupported, match=named):
        paimon.open_table(keyed.location, {option.key: value})
    assert catalog.list_tables("d") == ["t"]
    assert option.key not in catalog.table("d.t").options


@pytest.mark.parametrize("option", REFUSED, ids=lambda option: option.key)
def test_a_table_that_carries_a_refused_option_opens(option: Option, tmp_path: Path) -> None:
    """Java may have written it. Where the option changes the rows, a read refuses the table by name."""
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT NOT NULL", options={"owner": "x"})
    table.write([{"k": 1}])
    schema = Path(table.location, "schema", "schema-0")
    stored = schema.read_text().replace('"owner" : "x"', f'"{option.key}" : "{other_value(option)}"')
    schema.write_text(stored)
    opened = paimon.open_table(table.location)
    assert opened.options[option.key] == other_value(option)
    assert opened.scan().to_arrow().to_pylist() == [{"k": 1}]
    if not option.immutable:
        assert option.key not in opened.alter(paimon.RemoveOption(option.key)).options


def create_table_with_option(directory: Path, columns: str, keys: list[str], key: str, value: str) -> paimon.Table:
    """Return a table without rows that another writer gave an option to."""
    catalog = paimon.connect(directory)
    catalog.create_database("d")
    options = {"owner": "x", **({"bucket": "1"} if keys else {})}
    table = catalog.create_table("d.t", columns, primary_keys=keys, options=options)
    schema = Path(table.location, "schema", "schema-0")
    schema.write_text(schema.read_text().replace('"owner" : "x"', f'"{key}" : "{value}"'))
    return paimon.open_table(table.location)


@pytest.mark.parametrize(
    ("columns", "keys", "key", "value"),
    [
        ("k INT NOT NULL", ["k"], "sequence.snapshot-ordering", "true"),
        ("k INT NOT NULL", ["k"], "write.sequence-number-init-mode", "snapshot"),
    ],
)
def test_a_carried_option_that_decides_what_is_stored_ends_the_writing(
    tmp_path: Path, columns: str, keys: list[str], key: str, value: str
) -> None:
    table = create_table_with_option(tmp_path, columns, keys, key, value)
    with pytest.raises(Unsupported, match=re.escape(key)):
        table.write([{"k": 1}])
    assert table.snapshots() == []


def test_a_carried_order_of_rows_ends_the_reading(tmp_path: Path) -> None:
    table = create_table_with_option(tmp_path, "k INT NOT NULL", ["k"], "sequence.snapshot-ordering", "true")
    with pytest.raises(Unsupported, match=r"sequence\.snapshot-ordering"):
        table.scan().to_arrow()


def test_tags_and_compactions_that_java_would_follow_up_are_refused(tmp_path: Path) -> None:
    tagged = create_table_with_option(tmp_path / "a", "k INT NOT NULL", ["k"], "tag.callbacks", "a.B")
    tagged.write([{"k": 1}])
    with pytest.raises(Unsupported, match=r"tag\.callbacks"):
        tagged.tags.create("t")
    tagged.with_options({"tag.callbacks": ""}).tags.create("t")
    indexed = create_table_with_option(tmp_path / "b", "k INT NOT NULL", ["k"], "pk-btree.index.columns", "k")
    indexed.with_options({"write-only": True}).write([{"k": 1}])
    with pytest.raises(Unsupported, match=r"pk-btree\.index\.columns"):
        indexed.compact(full=True)


@pytest.mark.parametrize("option", REFUSED, ids=lambda option: option.key)
def test_the_default_of_a_refused_option_is_accepted(option: Option) -> None:
    if option.default is None:
        assert is_default(option, " ")
    else:
        check_options({option.key: option.default})


@pytest.mark.parametrize("option", [o for o in OPTIONS.values() if o.catalog], ids=lambda option: option.key)
def test_options_of_catalogs_are_refused(option: Option, tmp_path: Path) -> None:
    value = option.default or other_value(option)
    with pytest.raises(Unsupported, match=re.escape(repr(option.key))):
        check_options({option.key: value})
    if option.effect is Effect.REFUSED:
        with pytest.raises(InvalidRequest, match=re.escape(repr(option.key))):
            paimon.connect(tmp_path, **{option.key: value})


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("tag.callback.x.param", "y"),
        ("table-default.tag.callback.x.param", "y"),
    ],
)
def test_families_of_options_are_refused_too(key: str, value: str) -> None:
    with pytest.raises(Unsupported, match=re.escape(key.removeprefix("table-default."))):
        check_options({key: value}, allow_unknown=True)


def test_every_option_that_is_not_implemented_has_a_reason() -> None:
    for option in (*OPTIONS.values(), *FAMILIES):
        if option.effect is not Effect.IMPLEMENTED:
            assert len(option.reason.split()) >= 4, option.key
            assert len(option.reason) <= 120 and option.reason.isprintable(), option.key
