"""Changes of the properties of databases; this library stores none, so that `Catalog.alter_database` refuses them.

Source: `pypaimon.catalog.rest.property_change`.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import define


class PropertyChange:
    """The base of all changes, with functions that make them."""

    @staticmethod
    def set_property(property: str, value: str) -> SetProperty:
        """Return the change that sets a property."""
        return SetProperty(property, value)

    @staticmethod
    def remove_property(property: str) -> RemoveProperty:
        """Return the change that removes a property."""
        return RemoveProperty(property)

    @staticmethod
    def get_set_properties_to_remove_keys(
        changes: Iterable[PropertyChange],
    ) -> tuple[dict[str, str], set[str]]:
        """Return the properties to set, and the names of those to remove."""
        listed = list(changes)
        values = {change.property: change.value for change in listed if isinstance(change, SetProperty)}
        return values, {change.property for change in listed if isinstance(change, RemoveProperty)}


@define
class SetProperty(PropertyChange):
    """Set a property."""

    property: str
    value: str


@define
class RemoveProperty(PropertyChange):
    """Remove a property."""

    property: str
