"""Change the schema of a table, overwrite partitions, and drop them."""

import tempfile

import pyarrow as pa
from pypaimon import CatalogFactory, Schema
from pypaimon.catalog.catalog_exception import TableAlreadyExistException, TableNotExistException
from pypaimon.schema.data_types import AtomicType
from pypaimon.schema.schema_change import Move, SchemaChange

catalog = CatalogFactory.create({"warehouse": tempfile.mkdtemp()})
catalog.create_database("shop", True)
columns = pa.schema([("day", pa.string()), ("visits", pa.int32())])
schema = Schema.from_pyarrow_schema(columns, partition_keys=["day"], options={"file.format": "orc"})
catalog.create_table("shop.visits", schema, False)
try:
    catalog.create_table("shop.visits", schema, False)
except TableAlreadyExistException as error:
    print("error:", error)


def write(rows, overwrite=None):
    table = catalog.get_table("shop.visits")
    builder = table.new_batch_write_builder()
    if overwrite is not None:
        builder = builder.overwrite(overwrite)
    writer, commit = builder.new_write(), builder.new_commit()
    fields = [
        pa.field(field.name, {"STRING": pa.string(), "INT": pa.int32(), "BIGINT": pa.int64()}[field.type.type])
        for field in table.fields
    ]
    writer.write_arrow(pa.Table.from_pylist(rows, schema=pa.schema(fields)))
    commit.commit(writer.prepare_commit())
    writer.close()
    commit.close()


def show(title):
    builder = catalog.get_table("shop.visits").new_read_builder()
    rows = builder.new_read().to_arrow(builder.new_scan().plan().splits()).to_pylist()
    print(title, sorted(rows, key=str))


write([{"day": "mon", "visits": 3}, {"day": "tue", "visits": 5}])
catalog.alter_table(
    "shop.visits",
    [
        SchemaChange.add_column("page", AtomicType("STRING"), "what was visited", Move.after("page", "day")),
        SchemaChange.update_column_type("visits", AtomicType("BIGINT")),
        SchemaChange.update_comment("visits of a day"),
        SchemaChange.set_option("target-file-size", "64 mb"),
    ],
)
catalog.alter_table("shop.visits", [SchemaChange.rename_column("visits", "hits")])
table = catalog.get_table("shop.visits")
print("columns:", [f"{field.name} {field.type} {field.description}" for field in table.fields])
print("option:", table.schema().options["target-file-size"], "comment:", table.comment())
show("before:")
write([{"day": "mon", "page": "home", "hits": 2**40}], overwrite={"day": "mon"})
show("after overwriting a partition:")
commit = table.new_batch_write_builder().new_commit()
commit.truncate_partitions([{"day": "tue"}])
commit.close()
show("after truncating a partition:")
catalog.rename_table("shop.visits", "shop.hits")
print("tables:", catalog.list_tables("shop"))
try:
    catalog.get_table("shop.visits")
except TableNotExistException as error:
    print("error:", error)
catalog.drop_table("shop.hits")
catalog.drop_database("shop")
print("databases:", catalog.list_databases())
