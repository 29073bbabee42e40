"""Create, replace and register the table of one name, for `paimon.catalog.Catalog`."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, TypeVar

import pyarrow as pa
from attrs import evolve, frozen

from paimon.domain.errors import AlreadyExists, PaimonError, PaimonWarning
from paimon.domain.identifier import Identifier
from paimon.domain.options.table_options import TableOptions
from paimon.domain.paths import TablePaths
from paimon.domain.schema.external_paths import check_external_places
from paimon.domain.schema.rules.layout import explain_key_scope
from paimon.domain.schema.table_schema import TableSchema
from paimon.domain.snapshot.snapshot import Snapshot
from paimon.domain.text_checks import check_names
from paimon.domain.types.ddl import to_fields
from paimon.domain.undo import undo_on_failure
from paimon.operations.evolve import TableDeclaration, build_catalog_properties, check_no_history, create_table
from paimon.operations.refs.external_files import delete_hidden_table
from paimon.operations.refs.filled_tables import (
    delete_creation_branches,
    discard_branch,
    find_interrupted,
    publish_filled_table,
)
from paimon.operations.refs.replace_table import name_hidden_place, require_directories, swap_tables
from paimon.ports.cancellation import shielded
from paimon.ports.catalogs import CatalogStore
from paimon.ports.engine import Engine

BeginBranch = Callable[[TablePaths], tuple[TablePaths, TableSchema]]
"""Declares a table in a branch of a place, and returns the branch and its schema."""
_Result = TypeVar("_Result")


@frozen
class TableCreation:
    """The place of one table in a catalog, and the steps that make a table there."""

    engine: Engine
    store: CatalogStore
    identifier: Identifier
    open_at: Callable[[str, Identifier], Any]
    """Opens the table of a directory under a name."""

    @property
    def paths(self) -> TablePaths:
        """The directory of the table."""
        return TablePaths(self.store.table_location(self.identifier.database, self.identifier.table))

    def declare(
        self,
        schema: Any,
        primary_keys: Sequence[str],
        partition_keys: Sequence[str],
        options: Mapping[str, str],
        comment: str | None,
    ) -> TableDeclaration:
        """Check the types of what a caller declares; a data frame or a file has its own columns."""
        if not isinstance(schema, str | pa.Schema | Sequence):
            from paimon.operations.write.input_rows import find_schema, open_files  # loaded when first used

            found = find_schema(open_files(self.engine, schema))
            schema = schema if found is None else found
        keys = check_names(primary_keys, "primary_keys"), check_names(partition_keys, "partition_keys")
        return TableDeclaration(to_fields(schema), *keys, options, comment)

    def create(self, declaration: TableDeclaration, allow_unknown_options: bool, replace: bool) -> None:
        """Write the first schema, and register the table; `replace` also if there is one."""
        if replace and self._is_registered():
            self.replace(declaration, lambda _: None, allow_unknown_options)
            return
        self._check_is_free()
        schema = create_table(self.engine, self.paths, declaration, allow_unknown_options)
        self.register(schema)
        self._warn_of_key_scope(schema)

    def replace(
        self, declaration: TableDeclaration, fill: Callable[[Any], _Result], allow_unknown_options: bool = False
    ) -> _Result:
        """Create a table at a hidden place, fill it, and put it in the place of the table of this name."""
        directories = require_directories(self.engine)
        check_external_places(TableOptions.of(declaration.options), self.paths.root)
        new = name_hidden_place(self.engine, self.paths, "new")
        with undo_on_failure(lambda: delete_hidden_table(self.engine, directories, new)):
            schema = create_table(self.engine, new, declaration, allow_unknown_options)
            filled = fill(self.open_at(new.root, self.identifier))
            with shielded():
                old = swap_tables(self.engine, new, self.paths)
        with shielded():
            with suppress(PaimonError):  # the table is replaced; what remains is not referenced
                delete_hidden_table(self.engine, directories, old)
            self.register(schema, known=True)
        self._warn_of_key_scope(schema)
        return filled

    def create_filled(self, begin: BeginBranch, fill: Callable[[Any], _Result]) -> _Result | Snapshot | None:
        """Create the table from a branch that `begin` declares and `fill` fills, or complete an interrupted call."""
        paths = self.paths
        interrupted = find_interrupted(self.engine, paths)
        if interrupted is None:
            self._check_is_free()
            check_no_history(self.engine, paths)
        branch, declared = begin(paths)
        with undo_on_failure(lambda: discard_branch(self.engine, branch)):
            if interrupted is not None:
                return self._complete(interrupted, declared)
            opened = self.open_at(paths.root, evolve(self.identifier, branch=branch.branch))
            named = evolve(opened.definition, table_name=self.identifier.full_name)
            filled = fill(evolve(opened, context=opened.context.with_table(named)))
        self._complete(branch, declared)
        self._warn_of_key_scope(declared)
        return filled

    def register(self, schema: TableSchema, known: bool = False) -> None:
        """Tell the catalog the columns and options of the table; `known` if it has an older record of it."""
        tell = self.store.update_table if known else self.store.register_table
        tell(self.identifier.database, self.identifier.table, build_catalog_properties(schema))

    @shielded()
    def _complete(self, branch: TablePaths, declared: TableSchema) -> Snapshot | None:
        """Make a branch the table that was declared, and register the table; return its latest snapshot."""
        done = publish_filled_table(self.engine, branch, self.paths)
        if not self._is_registered():
            self.register(done.schema)
        delete_creation_branches(self.engine, self.paths)
        if not done.is_declared_as(declared):
            hint = "its creation was interrupted, and is complete now"
            raise AlreadyExists("table", self.identifier.full_name, hint=hint)
        return done.snapshot

    def _check_is_free(self) -> None:
        if self._is_registered():
            hint = "pass exist_ok=True to open the existing table"
            raise AlreadyExists("table", self.identifier.full_name, hint=hint)

    def _is_registered(self) -> bool:
        return self.store.has_table(self.identifier.database, self.identifier.table)

    def _warn_of_key_scope(self, schema: TableSchema) -> None:
        scope = explain_key_scope(schema)
        if scope is not None:
            text = f"Table {self.identifier.full_name!r}: {scope}"
            warnings.warn(text, PaimonWarning, stacklevel=5)
