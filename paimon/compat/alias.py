"""The alias: modules named `pypaimon…` in `sys.modules`, whose names are those of this package.

Invariant: the alias has the listed names of pypaimon 2.1.0 and no others. Each other import raises an ImportError
that says what to use in its place.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_TYPES = (
    "ArrayType AtomicInteger AtomicType DataField DataType DataTypeParser MapType MultisetType "
    "RowType VectorType is_blob_type"
)
_CHANGES = (
    "AddColumn DropColumn Move MoveType RemoveOption RenameColumn SchemaChange SetOption UpdateColumnComment "
    "UpdateColumnDefaultValue UpdateColumnNullability UpdateColumnPosition UpdateColumnType UpdateComment"
)
_ERRORS = (
    "BranchAlreadyExistException BranchNotExistException CatalogException ColumnAlreadyExistException "
    "ColumnNotExistException DatabaseAlreadyExistException DatabaseNoPermissionException DatabaseNotExistException "
    "IllegalArgumentError IllegalStateError TableAlreadyExistException TableNoPermissionException "
    "TableNotExistException TagAlreadyExistException TagNotExistException"
)
_LISTING: Mapping[str, Mapping[str, str]] = {
    "pypaimon": {"catalog": "CatalogFactory", "schema": "Schema", "snapshot": "Tag", "managers": "TagManager"},
    "pypaimon.api.api_response": {"catalog_values": "GetTagResponse PagedList Partition"},
    "pypaimon.branch": {
        "catalog_values": "DEFAULT_MAIN_BRANCH",
        "managers": "BranchManager FileSystemBranchManager",
    },
    "pypaimon.branch.branch_manager": {"catalog_values": "DEFAULT_MAIN_BRANCH", "managers": "BranchManager"},
    "pypaimon.branch.filesystem_branch_manager": {"managers": "FileSystemBranchManager"},
    "pypaimon.catalog.catalog": {"catalog": "Catalog", "catalog_values": "Identifier"},
    "pypaimon.catalog.catalog_exception": {"catalog_values": _ERRORS},
    "pypaimon.catalog.catalog_factory": {"catalog": "CatalogFactory"},
    "pypaimon.catalog.database": {"catalog_values": "Database"},
    "pypaimon.catalog.filesystem_catalog": {"catalog": "FileSystemCatalog"},
    "pypaimon.catalog.jdbc_catalog": {"catalog": "JdbcCatalog"},
    "pypaimon.catalog.rest.property_change": {"catalog": "PropertyChange RemoveProperty SetProperty"},
    "pypaimon.changelog": {"snapshot": "Changelog", "managers": "ChangelogManager"},
    "pypaimon.changelog.changelog": {"snapshot": "Changelog"},
    "pypaimon.changelog.changelog_manager": {"managers": "ChangelogManager"},
    "pypaimon.common.file_io": {"file_io": "FileIO"},
    "pypaimon.common.identifier": {
        "catalog_values": "DEFAULT_MAIN_BRANCH Identifier SYSTEM_BRANCH_PREFIX SYSTEM_TABLE_SPLITTER UNKNOWN_DATABASE"
    },
    "pypaimon.common.options": {"options": "ConfigOption CoreOptions Options"},
    "pypaimon.common.options.config": {"options": "CatalogOptions"},
    "pypaimon.common.options.config_option": {"options": "ConfigOption Description"},
    "pypaimon.common.options.core_options": {
        "options": (
            "ChangelogProducer CoreOptions ExternalPathStrategy GlobalIndexColumnUpdateAction GlobalIndexSearchMode "
            "MergeEngine NestedKeyNullStrategy SortOrder StartupMode"
        ),
    },
    "pypaimon.common.options.options": {"options": "Options"},
    "pypaimon.common.predicate": {"predicate": "Predicate"},
    "pypaimon.common.predicate_builder": {"predicate": "PredicateBuilder"},
    "pypaimon.consumer.consumer": {"managers": "Consumer"},
    "pypaimon.consumer.consumer_manager": {"catalog_values": "DEFAULT_MAIN_BRANCH", "managers": "ConsumerManager"},
    "pypaimon.read.explain": {"scan": "ExplainResult ExplainSplitInfo PruningStat"},
    "pypaimon.read.plan": {"scan": "Plan"},
    "pypaimon.read.read_builder": {"read": "ReadBuilder"},
    "pypaimon.read.split": {"scan": "DataSplit Split"},
    "pypaimon.read.stream_read_builder": {"stream_read": "StreamReadBuilder"},
    "pypaimon.read.streaming_table_scan": {"stream_read": "AsyncStreamingTableScan"},
    "pypaimon.read.table_read": {"read": "TableRead", "rows": "ROW_KIND_COLUMN"},
    "pypaimon.read.table_scan": {"scan": "TableScan"},
    "pypaimon.schema.data_types": {"data_types": f"PyarrowFieldParser {_TYPES}"},
    "pypaimon.schema.schema": {"schema": "Schema"},
    "pypaimon.schema.schema_change": {"schema": _CHANGES},
    "pypaimon.schema.schema_manager": {"schema_manager": "SchemaManager"},
    "pypaimon.schema.table_schema": {"schema": "TableSchema"},
    "pypaimon.snapshot.snapshot": {"snapshot": "BATCH_COMMIT_IDENTIFIER Snapshot"},
    "pypaimon.snapshot.snapshot_manager": {"managers": "SnapshotManager"},
    "pypaimon.snapshot.table_snapshot": {"catalog_values": "TableSnapshot"},
    "pypaimon.table.bucket_mode": {"stored_table": "BucketMode"},
    "pypaimon.table.data_evolution_merge_into": {"merge_into": "WhenMatched WhenNotMatched lit source_col target_col"},
    "pypaimon.table.file_store_table": {"table": "FileStoreTable"},
    "pypaimon.table.instant": {"snapshot": "Instant SnapshotInstant TagInstant"},
    "pypaimon.table.row.generic_row": {"rows": "GenericRow"},
    "pypaimon.table.row.internal_row": {"rows": "InternalRow"},
    "pypaimon.table.row.offset_row": {"rows": "OffsetRow"},
    "pypaimon.table.row.row_kind": {"rows": "RowKind"},
    "pypaimon.table.system.branches_table": {"system_tables": "BranchesTable"},
    "pypaimon.table.system.buckets_table": {"system_tables": "BucketsTable"},
    "pypaimon.table.system.consumers_table": {"system_tables": "ConsumersTable"},
    "pypaimon.table.system.file_key_ranges_table": {"system_tables": "FileKeyRangesTable"},
    "pypaimon.table.system.files_table": {"system_tables": "FilesTable"},
    "pypaimon.table.system.manifests_table": {"system_tables": "ManifestsTable"},
    "pypaimon.table.system.options_table": {"system_tables": "OptionsTable"},
    "pypaimon.table.system.partitions_table": {"system_tables": "PartitionsTable"},
    "pypaimon.table.system.schemas_table": {"system_tables": "SchemasTable"},
    "pypaimon.table.system.snapshots_table": {"system_tables": "SnapshotsTable"},
    "pypaimon.table.system.table_indexes_table": {"system_tables": "TableIndexesTable"},
    "pypaimon.table.system.tags_table": {"system_tables": "TagsTable"},
    "pypaimon.table.table": {"stored_table": "Table"},
    "pypaimon.tag.tag": {"snapshot": "Tag"},
    "pypaimon.tag.tag_manager": {"managers": "TagManager"},
    "pypaimon.write.commit_callback": {"commit_message": "CommitCallback CommitCallbackContext"},
    "pypaimon.write.commit_message": {"commit_message": "CommitMessage"},
    "pypaimon.write.postpone_batch_table_write": {
        "postpone_bucket": "PostponeFixedBucketBatchTableWrite PostponeFixedBucketWriteBuilder",
    },
    "pypaimon.write.postpone_bucket": {"postpone_bucket": "PostponeBucketPlan PostponeBucketPlanner"},
    "pypaimon.write.table_commit": {"write": "BatchTableCommit StreamTableCommit TableCommit"},
    "pypaimon.write.table_update": {
        "update": "BatchTableUpdate ShardTableUpdator StreamTableUpdate TableUpdate",
    },
    "pypaimon.write.table_write": {"write": "BatchTableWrite StreamTableWrite TableWrite"},
    "pypaimon.write.write_builder": {"write": "BatchWriteBuilder StreamWriteBuilder WriteBuilder"},
}
HOMES: Mapping[str, Mapping[str, str]] = {
    module: {name: f"paimon.compat.{home}" for home, names in homes.items() for name in names.split()}
    for module, homes in _LISTING.items()
}
"""For each module of pypaimon its public names, with the module of this package that has them."""
PACKAGES = frozenset(
    ".".join(parts[:end]) for module in HOMES for parts in [module.split(".")] for end in range(1, len(parts))
)
"""The modules of pypaimon that contain other modules."""
_PUBLIC_WAYS: Mapping[str, str] = {
    "pypaimon.PaimonVirtualFileSystem": "open the warehouse with CatalogFactory.create, and files with table.file_io",
    "pypaimon.SQLContext": "use Catalog.sql of the package paimon",
    "pypaimon.api": "open the warehouse with CatalogFactory.create; a REST server is not supported",
    "pypaimon.benchmark": "run the programs in the folder 'benchmarks' of the repository",
    "pypaimon.branch": "use table.branch_manager(), or Catalog.create_branch, drop_branch and list_branches",
    "pypaimon.build_info": "read paimon.__version__",
    "pypaimon.casting": "change types with Catalog.alter_table and SchemaChange.update_column_type",
    "pypaimon.catalog": "open the warehouse with CatalogFactory.create",
    "pypaimon.catalog.rest": "use metastore=filesystem or metastore=jdbc; a REST server is not supported",
    "pypaimon.cli": "run 'paimon --help'",
    "pypaimon.common": "use the options, predicates and identifiers that the how-to page lists",
    "pypaimon.common.external_path_provider": "set the options data-file.external-paths of a table",
    "pypaimon.common.memory_size": "give sizes as texts such as '128 mb'; options return bytes",
    "pypaimon.common.options": "import CoreOptions, Options and ConfigOption from pypaimon.common.options",
    "pypaimon.common.predicate_json_parser": "build predicates with new_read_builder().new_predicate_builder()",
    "pypaimon.common.uri_reader": "read BLOB columns as binary values",
    "pypaimon.common.where_parser": "pass SQL text: table.scan(where='…') of the package paimon",
    "pypaimon.daft": "pass table.new_read_builder().new_read().to_arrow(splits) to daft.from_arrow",
    "pypaimon.data": "values are Python values and Arrow arrays",
    "pypaimon.deletionvectors": "deleted rows are left out by new_read_builder().new_read().to_arrow(splits)",
    "pypaimon.filesystem": "pass options of the storage to CatalogFactory.create, such as s3.endpoint",
    "pypaimon.function": "define functions in SQL engines; a REST server is not supported",
    "pypaimon.globalindex": "call table.create_global_index; conditions of new_read_builder().with_filter(…) use it",
    "pypaimon.index": "read the system table 'db.table$table_indexes'",
    "pypaimon.management": "permissions belong to a REST server, which is not supported",
    "pypaimon.manifest": "read the system tables 'db.table$manifests' and 'db.table$files'",
    "pypaimon.multimodal": "use tables with BYTES columns",
    "pypaimon.ray": "call new_read_builder().new_read().to_ray(splits), and new_write().write_ray(dataset)",
    "pypaimon.read": "plan and read with table.new_read_builder(): new_scan().plan(), new_read().to_arrow(splits)",
    "pypaimon.sample": "run the programs in 'examples/pypaimon' of the repository",
    "pypaimon.schema": "declare with Schema and change with Catalog.alter_table and SchemaChange",
    "pypaimon.snapshot": "use table.snapshot_manager(), or the system table 'db.table$snapshots'",
    "pypaimon.sql": "use Catalog.sql of the package paimon",
    "pypaimon.table": "open tables with Catalog.get_table, and read and write them with their builders",
    "pypaimon.table.data_evolution_merge_into": "call new_batch_write_builder().new_update().merge_into",
    "pypaimon.table.format": "tables of type format-table are not supported: write their rows to a table",
    "pypaimon.table.system": "open system tables by name: Catalog.get_table('db.table$snapshots')",
    "pypaimon.table.source": "plan with table.new_read_builder().new_scan().plan()",
    "pypaimon.table.row": "rows are those of TableRead.to_iterator, and GenericRow for write_row",
    "pypaimon.table.special_fields": "name system columns by text: '_ROW_ID'",
    "pypaimon.utils": "plan, read and write with the builders of the table",
    "pypaimon.write": "write with table.new_batch_write_builder(): new_write(), new_commit()",
}
_ANY = "use the names that docs/how-to/move-from-pypaimon.md lists"


def public_way(name: str) -> str:
    """Return what to do in place of a name that is not offered: the hint of the nearest module above it."""
    parts = name.split(".")
    above = (".".join(parts[:end]) for end in range(len(parts), 0, -1))
    return next((_PUBLIC_WAYS[module] for module in above if module in _PUBLIC_WAYS), _ANY)


PEER = "pypaimon"


class AliasModule(ModuleType):
    """A module of pypaimon whose public names are loaded on first use."""

    def __getattr__(self, name: str) -> Any:
        homes = HOMES.get(self.__name__, {})
        if name in homes:
            value = getattr(import_module(homes[name]), name)
            setattr(self, name, value)
            return value
        full_name = f"{self.__name__}.{name}"
        if name.startswith("__") or full_name in HOMES or full_name in PACKAGES:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}", name=name, obj=self)
        raise ImportError(refusal_text(full_name), name=self.__name__)

    def __dir__(self) -> list[str]:
        return sorted(HOMES.get(self.__name__, {}))


class AliasFinder(MetaPathFinder, Loader):
    """Finds `pypaimon` and its modules before the other finders do."""

    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> Any:
        """Return how a module is loaded; None for modules of other packages."""
        if fullname != PEER and not fullname.startswith(f"{PEER}."):
            return None
        if fullname not in HOMES and fullname not in PACKAGES:
            raise ModuleNotFoundError(refusal_text(fullname), name=fullname)
        return ModuleSpec(fullname, self, is_package=fullname in PACKAGES)

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Return an empty module."""
        return AliasModule(spec.name, f"Names of {spec.name}, which paimon.compat offers.")

    def exec_module(self, module: ModuleType) -> None:
        """Set the list of public names."""
        module.__all__ = sorted(HOMES.get(module.__name__, {}))  # type: ignore[attr-defined]


def refusal_text(name: str) -> str:
    """Return the text of the error for a name that is not offered."""
    return f"{name} is not offered by paimon.compat. Instead, {public_way(name)}."


def is_installed() -> bool:
    """Return whether the alias is installed in this process."""
    return any(isinstance(finder, AliasFinder) for finder in sys.meta_path)


def add_alias() -> None:
    """Install the alias; modules of the real package that are loaded already are an error."""
    if is_installed():
        return
    if PEER in sys.modules:
        raise RuntimeError("pypaimon is loaded already. Call paimon.compat.install() before the first import of it.")
    sys.meta_path.insert(0, AliasFinder())


def remove_alias() -> None:
    """Remove the alias and its modules from this process."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if not isinstance(finder, AliasFinder)]
    for name in [name for name, module in sys.modules.items() if isinstance(module, AliasModule)]:
        del sys.modules[name]
