"""The metadata files of a table as they are stored: snapshots, manifest lists, manifests and data files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import fastavro
from attrs import Factory, frozen


@frozen
class Metadata:
    """The metadata of a table, with a number for each file.

    Parameters
    ----------
    snapshots : dict of int to str
        Commit kinds by snapshot id.
    lists : list of (int, str, list of str)
        The manifest lists: snapshot id, ``base`` or ``delta``, and names of manifests.
    manifests : dict of str to int
        Numbers of manifests by name.
    data_files : dict of str to (int, str)
        Numbers and directories of data files by name.
    entries : list of (int, str, bool)
        The entries of manifests: number of the manifest, name of the data file, and whether it is added.
    """

    snapshots: dict[int, str] = Factory(dict)
    lists: list[tuple[int, str, list[str]]] = Factory(list)
    manifests: dict[str, int] = Factory(dict)
    data_files: dict[str, tuple[int, str]] = Factory(dict)
    entries: list[tuple[int, str, bool]] = Factory(list)


def read_metadata(root: Path) -> Metadata:
    """Read the metadata of the snapshots 1 to 3 of a table."""
    metadata = Metadata()
    for number in (1, 2, 3):
        snapshot = json.loads((root / "snapshot" / f"snapshot-{number}").read_text("utf8"))
        metadata.snapshots[number] = snapshot["commitKind"]
        for kind in ("base", "delta"):
            named = [row["_FILE_NAME"] for row in read_avro(root / "manifest" / snapshot[f"{kind}ManifestList"])]
            metadata.lists.append((number, kind, named))
            for name in named:
                if name not in metadata.manifests:
                    metadata.manifests[name] = len(metadata.manifests) + 1
                    add_entries(metadata, root, name)
    return metadata


def add_entries(metadata: Metadata, root: Path, manifest: str) -> None:
    """Add the entries of a manifest to the metadata.

    Parameters
    ----------
    metadata : Metadata
        Is changed.
    root : Path
        Directory of the table.
    manifest : str
        Name of the manifest.
    """
    for entry in read_avro(root / "manifest" / manifest):
        name = entry["_FILE"]["_FILE_NAME"]
        if name not in metadata.data_files:
            (path,) = root.rglob(name)
            metadata.data_files[name] = (len(metadata.data_files) + 1, str(path.relative_to(root).parent))
        metadata.entries.append((metadata.manifests[manifest], name, entry["_KIND"] == 0))


def read_avro(path: Path) -> list[dict[str, Any]]:
    """Return the records of a manifest or manifest list."""
    with path.open("rb") as file:
        return list(fastavro.reader(file))
