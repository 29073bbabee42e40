"""Names that other libraries have: they do not exist, and the error says what does the same."""

from __future__ import annotations

import copy
import pickle
import re
from collections.abc import Mapping
from operator import attrgetter
from pathlib import Path

import pytest

import paimon
from paimon.display.other_names import CATALOG_NAMES, MODULE_NAMES, RESULT_NAMES, SCAN_NAMES, TABLE_NAMES

OWNERS = {"catalog": CATALOG_NAMES, "table": TABLE_NAMES, "scan": SCAN_NAMES, "result": RESULT_NAMES}


@pytest.fixture(scope="module")
def owners(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, object]:
    catalog = paimon.connect(tmp_path_factory.mktemp("lake"))
    catalog.create_database("shop")
    table = catalog.create_table("shop.orders", "id BIGINT")
    result = catalog.sql("SELECT * FROM shop.orders")
    return {"catalog": catalog, "table": table, "scan": table.scan(), "result": result, "paimon": paimon}


@pytest.mark.parametrize("kind", OWNERS)
def test_an_other_name_does_not_exist_and_its_error_says_what_to_write(owners: Mapping[str, object], kind: str) -> None:
    for name, way in OWNERS[kind].items():
        owner = owners[kind]
        assert not hasattr(owner, name) and name not in dir(owner)
        with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}. ")) as refused:
            getattr(owner, name)
        assert way in str(refused.value) and refused.value.name == name
    with pytest.raises(AttributeError, match=r"no attribute 'zqwxy'$"):
        getattr(owners[kind], "zqwxy")  # noqa: B009  (it raises)


def test_names_of_the_module() -> None:
    for name, way in MODULE_NAMES.items():
        with pytest.raises(AttributeError, match=re.escape(f"no attribute {name!r}. Write {way}.")):
            getattr(paimon, name)


def test_what_to_write_exists(owners: Mapping[str, object]) -> None:
    ways = {way for names in (*OWNERS.values(), MODULE_NAMES) for way in names.values()}
    found = [match for way in ways for match in re.findall(r"\b(catalog|table|scan|result|paimon)((?:\.\w+)+)", way)]
    assert len(found) > 60
    for kind, path in found:
        if path != ".spark.read":
            attrgetter(path[1:])(owners[kind])


def test_copies_and_pickles_work_as_before(owners: Mapping[str, object], tmp_path: Path) -> None:
    catalog = owners["catalog"]
    assert isinstance(catalog, paimon.Catalog)
    assert pickle.loads(pickle.dumps(catalog)).tables() == copy.copy(catalog).tables() == ["shop.orders"]
    assert catalog.tables("shop") == catalog.list_tables("shop") == ["orders"]
