"""The methods of catalogs about tags and branches, by the names of pypaimon.

Source: `pypaimon.catalog.catalog`.
"""

from __future__ import annotations

from typing import Any

import paimon
from paimon.compat.catalog_exception import BranchNotExistException, TagNotExistException, catalog_errors
from paimon.compat.catalog_values import GetTagResponse, PagedList, cut_page, to_iso_duration
from paimon.compat.identifier import Identifier
from paimon.compat.refused import PeerClass
from paimon.compat.snapshot import from_paimon_tag
from paimon.compat.table import FileStoreTable



class VersionMethods(PeerClass):
    """Mixin: a class provides `get_table`, and gets the methods about tags and branches."""

    def get_table(self, identifier: Name) -> Any:
        """Open a table."""
        raise NotImplementedError

    def create_tag(
        self,
        identifier: Name,
        tag_name: str,
        snapshot_id: int | None = None,
        time_retained: str | None = None,
        ignore_if_exists: bool = False,
    ) -> None:
        """Create a tag."""
        table = self.get_table(identifier)
        with catalog_errors():
            try:
                table.inner.tags.create(tag_name, snapshot_id, time_retained=time_retained, exist_ok=ignore_if_exists)
            except paimon.NotFound as error:
                raise ValueError(str(error)) from error

    def delete_tag(self, identifier: Name, tag_name: str) -> None:
        """Delete a tag."""
        if not self.get_table(identifier).delete_tag(tag_name):
            raise TagNotExistException(tag_name)

    def get_tag(self, identifier: Name, tag_name: str) -> GetTagResponse:
        """Return a tag."""
        found = self.get_table(identifier).inner.tags.get(tag_name)
        if found is None:
            raise TagNotExistException(tag_name)
        tag = from_paimon_tag(found)
        created = None if tag.tag_create_time is None else int(tag.tag_create_time.timestamp() * 1000)
        retained = None if tag.tag_time_retained is None else to_iso_duration(tag.tag_time_retained)
        return GetTagResponse(tag_name, tag.trim_to_snapshot(), created, retained)

    def list_tags_paged(
        self,
        identifier: Name,
        max_results: int | None = None,
        page_token: str | None = None,
        tag_name_prefix: str | None = None,
    ) -> PagedList[str]:
        """Return the names of the tags of a table in pages."""
        names = [name for name in self.get_table(identifier).list_tags() if name.startswith(tag_name_prefix or "")]
        return PagedList(*cut_page(names, max_results, page_token))

    def create_branch(self, identifier: Name, branch_name: str, tag_name: str | None = None) -> None:
        """Create a branch, by default without rows."""
        table = self.get_table(identifier)
        with catalog_errors():
            table.inner.branches.create(branch_name, tag_name)

    def drop_branch(self, identifier: Name, branch_name: str) -> None:
        """Delete a branch."""
        self._existing_branch(identifier, branch_name).inner.branches.delete(branch_name)

    def rename_branch(self, identifier: Name, from_branch: str, to_branch: str) -> None:
        """Give a branch another name."""
        table = self._existing_branch(identifier, from_branch)
        with catalog_errors():
            table.inner.branches.rename(from_branch, to_branch)

    def fast_forward(self, identifier: Name, branch_name: str) -> None:
        """Continue a table with the snapshots of a branch."""
        self._existing_branch(identifier, branch_name).inner.branches.fast_forward(branch_name)

    def list_branches(self, identifier: Name) -> list[str]:
        """Return the names of the branches of a table other than main."""
        return list(self.get_table(identifier).inner.branches)

    def _existing_branch(self, identifier: Name, branch_name: str) -> FileStoreTable:
        table: FileStoreTable = self.get_table(identifier)
        if branch_name not in table.inner.branches:
            raise BranchNotExistException(branch_name)
        return table
