"""Names that other libraries have for what this one does: the error about an unknown attribute says what to write.

Invariant: none of these names exists, so a type checker and completion do not offer them.
"""

from __future__ import annotations

from collections.abc import Mapping


def _by_name(names_by_way: Mapping[str, str]) -> Mapping[str, str]:
    return {name: way for way, names in names_by_way.items() for name in names.split()}


_SQL = "catalog.sql('SELECT …'), or to_polars() and its methods"
_OF_DATA_FRAMES = "sort sort_values order_by orderBy group_by groupby groupBy agg aggregate join distinct unique"

MODULE_NAMES = _by_name({
    "paimon.connect(warehouse).table('database.table'), or paimon.open_table(path)":
        "open load load_table read read_table scan_table get_table",
    "paimon.connect(warehouse)": "Connection create_catalog load_catalog CatalogFactory open_catalog",
    "paimon.connect(warehouse).sql(text)": "query execute",
    "paimon.connect(warehouse).table('database.table').write(rows)": "write write_table",
    "a pyarrow.Schema, or text such as 'id BIGINT NOT NULL, name STRING'": "Schema schema",
})  # fmt: skip
CATALOG_NAMES = _by_name({
    "catalog.table('database.table')": "get_table read_table get load read open_table",
    "catalog.sql(text)": "query execute run use",
    "catalog.tables('database')": "show_tables table_names",
    "list(catalog)": "keys list names",
    "catalog.create_table('database.table', schema)": "create",
    "catalog.drop_table('database.table')": "drop purge_table delete_table",
    "catalog.databases()": "namespaces list_namespaces schemas list_schemas show_databases dbs list_dbs",
    "catalog.create_database('name')": "create_namespace create_schema create_namespace_if_not_exists",
    "catalog.create_table('database.table', schema, exist_ok=True)": "create_table_if_not_exists",
    "catalog.drop_database('name')": "drop_namespace drop_schema",
    "'database.table' in catalog": "table_exists has_table exists",
    "'name' in catalog.databases()": "database_exists has_database namespace_exists",
    "catalog.database_properties('name')": "get_database database load_namespace_properties",
    "catalog.repair_table('database.table')": "register_table register",
    "catalog.table('database.table').write(rows)": "write write_table insert append",
    "catalog.close()": "disconnect",
})  # fmt: skip
TABLE_NAMES = _by_name({
    "table.scan(where='…')": "filter where query find",
    "table.scan(columns=['…'])": "select project",
    "table.scan(limit=…), or table.head(…)": "limit take first fetch sample tail",
    "table.to_arrow(), table.to_pandas() or table.to_polars()": "collect load read fetchall rows",
    "table.to_arrow()": "arrow to_pyarrow to_pyarrow_table to_table",
    "table.to_pandas()": "df to_df toPandas to_dataframe to_frame",
    "table.to_polars()": "pl to_pl",
    "table.to_arrow().to_pylist()": "to_pylist to_dicts to_list to_dict iterrows items",
    "table.scan().to_batches()": "to_batches iter_batches to_reader to_arrow_batch_reader",
    "table.scan().to_duckdb()": "to_duckdb",
    "table.scan().explain()": "explain plan",
    "paimon.spark.read(spark, table)": "to_spark toDF",
    _SQL: f"sql {_OF_DATA_FRAMES}",
    "table.count()": "len length num_rows shape height size",
    "table.schema": "dtypes fields describe info collect_schema print_schema printSchema",
    "table.system_table('files').to_arrow()": "files data_files file_uris inspect_files",
    "table.system_table('manifests').to_arrow()": "manifests",
    "table.snapshot()": "version current_snapshot latest_snapshot get_latest_snapshot",
    "table.history()": "get_history log versions",
    "table.scan(snapshot=…), with tag=… or with timestamp=…": "as_of at time_travel load_as_version snapshot_at",
    "table.maintain.rollback_to(…)": "restore rollback rollback_to revert",
    "table.write(rows)": "append insert insert_into add add_rows put save write_arrow write_pandas write_table",
    "table.write(rows), which replaces the rows of the same primary key": "upsert",
    "table.merge(source, on=…)": "merge_into",
    "table.overwrite(rows, partition={…})": "overwrite_partition replace replace_partition",
    "table.delete('true')": "truncate clear delete_all",
    "table.delete('…')": "delete_where remove",
    "catalog.drop_table('database.table')": "drop",
    "catalog.rename_table('database.table', 'database.other')": "rename",
    "table.tags.create('…')": "tag create_tag",
    "table.branches.create('…')": "branch create_branch",
    "table.options": "properties metadata configuration tblproperties",
    "table.location": "path uri base_path table_uri",
    "table.primary_keys": "primary_key keys pk",
    "table.partition_keys": "partition_by partition_columns",
    "table.add_column(name, type), drop_column, rename_column or alter": "add_columns with_column update_schema",
    "table.compact()": "optimize compaction compact_files",
    "table.maintain.expire_snapshots() and table.maintain.remove_orphans()": "vacuum cleanup",
    "table.maintain.expire_snapshots()": "expire_snapshots expire",
    "table.maintain.remove_orphans()": "remove_orphans remove_orphan_files",
    "table.maintain.check()": "check fsck health repair",
    "Leave it out: each read uses the latest snapshot": "refresh reload update_incremental",
})  # fmt: skip
SCAN_NAMES = _by_name({
    "table.scan(where='…')": "filter where query",
    "table.scan(columns=['…'])": "select project",
    "table.scan(limit=…), or scan.head(…)": "limit take first fetch sample tail",
    "scan.to_arrow()": "arrow collect fetchall load read rows to_pyarrow to_pyarrow_table to_table",
    "scan.to_pandas()": "df to_df toPandas to_dataframe",
    "scan.to_arrow().to_pylist()": "to_pylist to_dicts to_list to_dict iterrows",
    "scan.count()": "len length num_rows shape height size",
    "scan.schema.names": "columns",
    _SQL: f"sql {_OF_DATA_FRAMES}",
})  # fmt: skip
RESULT_NAMES = _by_name({
    "result.to_arrow()": "arrow collect fetch_arrow_table to_pyarrow to_table",
    "result.to_arrow().to_pylist()": "fetchall fetchone fetchmany rows to_pylist to_dicts to_list",
    "result.to_pandas()": "df to_df toPandas fetchdf to_dataframe",
    "result.to_polars()": "pl",
    "result.count()": "len length num_rows shape rowcount",
    "result.schema.names": "columns description",
    "another catalog.sql(text)": f"filter where select limit {_OF_DATA_FRAMES}",
})  # fmt: skip


def explain_attribute(owner: object, name: str, ways: Mapping[str, str]) -> AttributeError:
    """Return the error about an attribute that does not exist, with the way that does the same."""
    message = f"{type(owner).__name__!r} object has no attribute {name!r}"
    return AttributeError(message + suggest_way(name, ways), name=name, obj=owner)


def suggest_way(name: str, ways: Mapping[str, str]) -> str:
    """Return the end of a message that says what to write in place of a name; empty if that is not known."""
    way = ways.get(name, "")
    return f". {way if way[0].isupper() else f'Write {way}'}." if way else ""
