"""Every format of data files that an option may name is loaded, and writes and reads tables."""

from __future__ import annotations

from pathlib import Path

import pytest

import paimon
from paimon.adapters.formats.on_demand import FormatsOnDemand
from paimon.domain.options.known_options import OPTIONS
from paimon.domain.options.layout_options import FILE_FORMATS
from paimon.domain.schema.writable import BLOB_FORMAT


def test_options_may_name_exactly_the_formats_that_are_loaded() -> None:
    """All but the format of BLOB columns, whose files are next to those of another format."""
    formats = FormatsOnDemand(0)
    assert set(formats) == {*FILE_FORMATS, BLOB_FORMAT}
    assert all(formats[name].identifier == name for name in formats)
    assert all(name in OPTIONS["file.format"].doc for name in FILE_FORMATS)


@pytest.mark.parametrize("format_name", FILE_FORMATS)
def test_tables_of_every_format(tmp_path: Path, format_name: str) -> None:
    catalog = paimon.connect(tmp_path)
    catalog.create_database("d")
    options = {"bucket": "1", "file.format": format_name, "changelog-producer": "lookup"}
    table = catalog.create_table("d.t", "k INT NOT NULL, v STRING", primary_keys=["k"], options=options)
    table.write([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}])
    table.write([{"k": 1, "v": "c"}])
    table.compact(full=True)
    assert table.scan().to_arrow().to_pylist() == [{"k": 1, "v": "c"}, {"k": 2, "v": "b"}]
    assert table.scan(where="k = 2", columns=["v"]).to_arrow().to_pylist() == [{"v": "b"}]
    stored = [*Path(table.location).glob("bucket-0/data-*"), *Path(table.location).glob("bucket-0/changelog-*")]
    assert {file.suffix for file in stored} == {f".{format_name}"}
