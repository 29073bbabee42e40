"""The alias offers the public names of pypaimon, and refuses all others by name with the way it is done here."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import paimon
import paimon.compat
from paimon.compat.alias import HOMES

COLUMNS = pa.schema([pa.field("id", pa.int64(), nullable=False), ("name", pa.string())])


@pytest.fixture(autouse=True)
def alias() -> Iterator[None]:
    paimon.compat.install()
    yield
    paimon.compat.uninstall()


def test_every_listed_name_can_be_imported() -> None:
    for module, homes in HOMES.items():
        loaded = import_module(module)
        assert [n for n, home in homes.items() if getattr(loaded, n) is not getattr(import_module(home), n)] == []
        assert dir(loaded) == sorted(homes), module


@pytest.mark.parametrize(
    ("module", "way"),
    [
        ("pypaimon.read.reader.sort_merge_reader", "table.new_read_builder()"),
        ("pypaimon.manifest.manifest_list_manager", "'db.table$manifests'"),
        ("pypaimon.write.file_store_commit", "table.new_batch_write_builder()"),
        ("pypaimon.ray", "to_ray(splits)"),
        ("pypaimon.catalog.rest.rest_catalog", "metastore=filesystem or metastore=jdbc"),
        ("pypaimon.utils.range", "builders of the table"),
        ("pypaimon.table.row.blob", "GenericRow"),
        ("pypaimon.common.memory_size", "'128 mb'"),
        ("pypaimon.cli.cli", "paimon --help"),
        ("pypaimon.unheard_of", "docs/how-to/move-from-pypaimon.md"),
    ],
)
def test_an_internal_module_is_refused_with_the_public_way(module: str, way: str) -> None:
    with pytest.raises(ImportError, match=r"is not offered by paimon\.compat") as caught:
        import_module(module)
    assert way in str(caught.value)


def test_an_internal_name_of_a_public_module_is_refused_with_the_public_way() -> None:
    with pytest.raises(ImportError, match=r"SplitSerializer is not offered .*new_read_builder"):
        from pypaimon.read.split import SplitSerializer  # type: ignore[import-not-found]  # noqa: F401


def test_nothing_is_left_after_uninstalling() -> None:
    import_module("pypaimon.schema.schema")
    paimon.compat.uninstall()
    assert not paimon.compat.is_installed()
    assert not [name for name in sys.modules if name.startswith("pypaimon")]


def test_the_real_package_is_not_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    paimon.compat.uninstall()
    monkeypatch.setitem(sys.modules, "pypaimon", sys)
    with pytest.raises(RuntimeError, match="loaded already"):
        paimon.compat.install()


def test_importing_the_library_does_not_load_the_alias() -> None:
    code = "import paimon, sys; paimon.connect('memory://x'); print([m for m in sys.modules if 'paimon.compat' in m])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def create(tmp_path: Path, options: dict[str, str], keys: list[str] | None = None) -> object:
    from pypaimon import CatalogFactory, Schema

    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("shop", True)
    schema = Schema.from_pyarrow_schema(COLUMNS, primary_keys=keys, options=options)
    catalog.create_table("shop.orders", schema, False)
    return catalog.get_table("shop.orders")


def test_an_unknown_table_option_warns_of_the_nearest_and_changes_no_rows(tmp_path: Path) -> None:
    with pytest.warns(paimon.PaimonWarning, match=r"Option 'bukket' is unknown.*Did you mean 'bucket'\?") as caught:
        table: Any = create(tmp_path, {"bukket": "2"}, ["id"])
    assert caught[0].filename == __file__
    assert table.schema().options["bukket"] == "2"
    write(table, [1, 2, 2])
    with pytest.warns(paimon.PaimonWarning, match=r"Option 'scan\.limits' is unknown"):
        copied = table.copy({"scan.limits": "0"})
    assert read(copied) == read(table) == [1, 2]
    paimon.compat.install(allow_unknown_options=False)
    with pytest.raises(ValueError, match=r"Option 'bukket' is unknown.*Did you mean 'bucket'.*--no-allow-unknown"):
        create(tmp_path / "other", {"bukket": "2"})


def write(table: Any, ids: list[int]) -> None:
    builder = table.new_batch_write_builder()
    writer = builder.new_write()
    writer.write_arrow(pa.table({"id": ids, "name": ["x"] * len(ids)}, schema=COLUMNS))
    builder.new_commit().commit(writer.prepare_commit())


def read(table: Any) -> list[int]:
    builder = table.new_read_builder()
    return sorted(builder.new_read().to_arrow(builder.new_scan().plan().splits())["id"].to_pylist())


def test_an_unknown_catalog_option_warns_unless_it_is_refused(tmp_path: Path) -> None:
    from pypaimon import CatalogFactory

    options = {"warehouse": str(tmp_path), "metastor": "filesystem"}
    with pytest.warns(paimon.PaimonWarning, match=r"'metastor' is unknown.*Did you mean 'metastore'\?"):
        CatalogFactory.create(options)
    paimon.compat.install(allow_unknown_options=False)
    with pytest.raises(ValueError, match=r"'metastor' is unknown.*Did you mean 'metastore'.*--no-allow-unknown"):
        CatalogFactory.create(options)
    with pytest.raises(NotImplementedError, match="metastore=rest"):
        CatalogFactory.create({"warehouse": str(tmp_path), "metastore": "rest"})
    with pytest.raises(ValueError, match="'warehouse' path must be set"):
        CatalogFactory.create({})


def test_an_append_table_with_buckets_gets_a_bucket_key_and_a_warning(tmp_path: Path) -> None:
    with pytest.warns(paimon.PaimonWarning, match="'bucket-key' is set to 'id'"):
        table = create(tmp_path, {"bucket": "2"})
    assert table.options.bucket_key() == "id"  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("use", "way"),
    [
        (lambda table: table.new_vector_search_builder(), "a library for vectors"),
        (lambda table: table.new_read_builder().with_projection({"x": "id"}), "Catalog.sql"),
        (lambda table: table.new_read_builder().new_scan().with_slice(0, 1), "call with_shard"),
        (lambda table: table.new_read_builder().new_scan().with_chunk_shuffle(1, 9), "a DataLoader with shuffle=True"),
        (lambda table: table.new_batch_write_builder().new_write().write_arrow(pa.table({}), bucket=1), "leave the"),
        (lambda table: update_in(table.new_batch_write_builder().overwrite()), "new batch builder"),
        (lambda table: type(table.new_read_builder().new_read())(table, output_projection=["id"]), "with_projection"),
    ],
)
def test_a_feature_that_is_not_offered_names_the_way_here(tmp_path: Path, use: object, way: str) -> None:
    table = create(tmp_path, {"bucket": "1"}, ["id"])
    with pytest.raises(NotImplementedError, match=r"paimon\.compat does not offer") as caught:
        use(table)  # type: ignore[operator]
    assert way in str(caught.value)


def update_in(builder: object) -> None:
    builder.new_commit().commit(builder.new_update().delete_by_predicate(None))  # type: ignore[attr-defined]


def test_dynamic_options_are_removed_by_none_and_unknown_ones_follow_the_setting(tmp_path: Path) -> None:
    table = create(tmp_path, {})
    copied = table.copy({"write-only": "true"}).copy({"write-only": None})  # type: ignore[attr-defined]
    assert "write-only" not in copied.table_schema.options
    with pytest.warns(paimon.PaimonWarning, match=r"Option 'new\.option' is unknown"):
        assert table.copy({"new.option": "1"}).table_schema.options["new.option"] == "1"  # type: ignore[attr-defined]
    paimon.compat.install(allow_unknown_options=False)
    with pytest.raises(ValueError, match=r"Option 'new\.option' is unknown.*allow_unknown_options=False"):
        table.copy({"new.option": "1"})  # type: ignore[attr-defined]
    assert table.copy({"read.parallelism": "2"}).options.read_parallelism() == 2  # type: ignore[attr-defined]


def test_updates_and_deletes_are_made_by_the_commit(tmp_path: Path) -> None:
    from pypaimon.table.file_store_table import FileStoreTable  # type: ignore[import-not-found]

    table = create(tmp_path, {"bucket": "1"}, ["id"])
    assert isinstance(table, FileStoreTable)

    def commit(messages: list[object]) -> list[dict[str, object]]:
        table.new_batch_write_builder().new_commit().commit(messages)
        builder = table.new_read_builder()
        rows = builder.new_read().to_arrow(builder.new_scan().plan().splits())
        return rows.sort_by("id").to_pylist()  # type: ignore[no-any-return]

    update = table.new_batch_write_builder().new_update()
    predicates = update.new_predicate_builder()
    new = pa.table({"id": [1, 2, 3], "name": ["a", "b", "c"]})
    names_of = {row["id"]: row["name"] for row in commit(update.upsert_by_arrow_with_key(new, ["id"]))}
    assert names_of == {1: "a", 2: "b", 3: "c"}
    rows = commit(update.update_by_predicate(predicates.greater_than("id", 1), {"name": "it's"}))
    assert [row["name"] for row in rows] == ["a", "it's", "it's"]
    assert [row["id"] for row in commit(update.delete_by_predicate(predicates.equal("id", 2)))] == [1, 3]


def test_row_kinds_of_rows_are_written(tmp_path: Path) -> None:
    from pypaimon.table.row.generic_row import GenericRow  # type: ignore[import-not-found]
    from pypaimon.table.row.row_kind import RowKind  # type: ignore[import-not-found]

    table = create(tmp_path, {"bucket": "1"}, ["id"])
    builder = table.new_stream_write_builder()  # type: ignore[attr-defined]
    writer, commit = builder.new_write(), builder.new_commit()
    for number, kind in ((1, RowKind.INSERT), (2, RowKind.INSERT), (1, RowKind.DELETE)):
        writer.write_row(GenericRow([number, "x"], table.fields, kind))  # type: ignore[attr-defined]
    commit.commit(writer.prepare_commit(1), 1)
    reader = table.new_read_builder()  # type: ignore[attr-defined]
    rows = reader.new_read().to_arrow(reader.new_scan().plan().splits())
    assert rows.to_pylist() == [{"id": 2, "name": "x"}]


def test_a_commit_calls_its_callbacks(tmp_path: Path) -> None:
    from pypaimon.write.commit_callback import CommitCallback  # type: ignore[import-not-found]

    seen = []

    class Callback(CommitCallback):  # type: ignore[misc]
        def call(self, context: object) -> None:
            seen.append((context.snapshot.id, len(context.commit_entries)))  # type: ignore[attr-defined]

    table = create(tmp_path, {})
    builder = table.new_batch_write_builder()  # type: ignore[attr-defined]
    writer, commit = builder.new_write(), builder.new_commit()
    writer.write_arrow(pa.table({"id": [1], "name": ["a"]}))
    commit.add_commit_callback(Callback())
    commit.commit(writer.prepare_commit())
    assert seen == [(1, 1)]
    commit = builder.new_commit()
    commit.add_commit_callback(Callback())
    commit.commit(builder.new_update().delete_by_predicate(None))
    assert [snapshot for snapshot, _ in seen] == [1, 2]


def test_rows_of_postponed_tables_are_postponed_unless_the_builder_says_otherwise(tmp_path: Path) -> None:
    table = create(tmp_path, {"bucket": "-2", "postpone.target-row-num-per-bucket": "1"}, ["id"])
    rows = pa.table({"id": [1, 2], "name": ["a", "b"]})

    def write(builder: object) -> list[int]:
        writer = builder.new_write()  # type: ignore[attr-defined]
        writer.write_arrow(rows)
        messages = writer.prepare_commit()
        builder.new_commit().commit(messages)  # type: ignore[attr-defined]
        return sorted({message.total_buckets for message in messages})

    copied = table.copy({"postpone.batch-write-fixed-bucket": "true"})  # type: ignore[attr-defined]
    assert write(copied.new_batch_write_builder()) == [-2]
    assert write(table.new_postpone_fixed_bucket_write_builder()) == [2]  # type: ignore[attr-defined]
    reader = table.new_read_builder()  # type: ignore[attr-defined]
    assert reader.new_read().to_arrow(reader.new_scan().plan().splits()).num_rows == 2


def test_other_tables_have_no_postponed_buckets(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="'bucket' = '-2'"):
        create(tmp_path, {}, ["id"]).new_postpone_fixed_bucket_write_builder()  # type: ignore[attr-defined]


def test_properties_of_databases_are_stored_by_a_jdbc_catalog(tmp_path: Path) -> None:
    from pypaimon import CatalogFactory
    from pypaimon.catalog.rest.property_change import PropertyChange  # type: ignore[import-not-found]

    options = {"metastore": "jdbc", "uri": f"sqlite:///{tmp_path}/catalog.db", "warehouse": str(tmp_path / "lake")}
    catalog = CatalogFactory.create(options)
    catalog.create_database("shop", False, {"owner": "ann", "comment": "orders"})
    catalog.alter_database("shop", [PropertyChange.set_property("owner", "bob"), PropertyChange.remove_property("x")])
    database = CatalogFactory.create(options).get_database("shop")
    assert (database.options["owner"], database.comment) == ("bob", "orders")
    with pytest.raises(ValueError, match="Cannot specify location"):
        catalog.create_database("other", False, {"location": "elsewhere"})
    files = CatalogFactory.create({"warehouse": str(tmp_path / "files")})
    with pytest.raises(paimon.Unsupported, match=r"use metastore=jdbc"):
        files.create_database("shop", False, {"owner": "ann"})
    assert files.list_databases() == []


def test_a_state_that_does_not_exist_is_a_value_error(tmp_path: Path) -> None:
    from paimon.compat.catalog import CatalogFactory
    from paimon.compat.schema import Schema

    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("shop")
    catalog.create_table("shop.stock", Schema.from_pyarrow_schema(pa.schema([("id", pa.int64())])))
    builder = catalog.get_table("shop.stock").copy({"scan.tag-name": "none"}).new_read_builder()
    for start in (builder.new_read, builder.new_scan().plan):
        with pytest.raises(ValueError, match="Tag 'none' doesn't exist"):
            start()


def test_an_option_that_cannot_change_is_named_in_the_words_of_pypaimon(tmp_path: Path) -> None:
    from paimon.compat.catalog import CatalogFactory
    from paimon.compat.schema import Schema, SchemaChange

    catalog = CatalogFactory.create({"warehouse": str(tmp_path)})
    catalog.create_database("shop")
    catalog.create_table("shop.stock", Schema.from_pyarrow_schema(pa.schema([("id", pa.int64())])))
    with pytest.raises(RuntimeError, match=r"Change 'type' is not supported yet\."):
        catalog.alter_table("shop.stock", [SchemaChange.set_option("type", "format-table")])
