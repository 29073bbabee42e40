"""The classes of the alias have the methods of pypaimon 2.1.0 with the same parameters, but for those that are listed.

`peer_signatures.json` has the methods of pypaimon 2.1.0, their parameters with defaults, and what they return. With
``--long``, the test downloads the package and reads them again. `CoreOptions` is tested apart: its methods are named by
options.
"""

from __future__ import annotations

import ast
import inspect
import json
import re
import subprocess
import sys
import zipfile
from enum import Enum
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from paimon.compat.alias import HOMES
from paimon.compat.options import CoreOptions, Options

HERE = Path(__file__).parent
SIGNATURES: dict[str, dict[str, Any]] = json.loads((HERE / "peer_signatures.json").read_text("utf8"))
NOT_OFFERED = dict(
    line.split(" | ")
    for line in (HERE / "peer_methods_not_offered.txt").read_text("utf8").splitlines()
    if not line.startswith("#")
)
"""The reason of each method that is not offered."""
LONGEST = 44
"""The length of this list, which may only become smaller."""
OPTIONAL_HERE = {
    "create_database(ignore_if_exists)",
    "create_table(ignore_if_exists)",
    "target_file_size(has_primary_key)",
}
"""Parameters that pypaimon requires."""
OTHER_CLASSES = {
    *("PropertyChange.set_property", "PropertyChange.remove_property", "StreamReadBuilder.new_read"),  # subclasses
    *(f"{kind}Type.from_dict" for kind in ("Atomic", "Array", "Vector", "Multiset", "Map", "Row")),  # annotated wider
}
"""Methods whose annotation names another class; the class of the result is that of pypaimon, or a subclass of it."""
OTHER_OPTIONS = re.compile(
    "index|blob|btree|row_sidecar|rewrite_max|write_cols_opt|local_cache|manifest_sidecar|mosaic|native|parquet_|pk_"
    "|primary_key_|query_auth|shredding|vector|video"
)
"""Options of what is not offered: global indexes, BLOB and vector files, caches, native readers, shredded columns."""
OPTION_CLASS = "pypaimon.common.options.core_options.CoreOptions"
PEER = "pypaimon==2.1.0"


def find_class(full_name: str) -> type:
    module, _, name = full_name.rpartition(".")
    found: type = getattr(import_module(HOMES[module][name]), name)
    return found


def list_missing() -> list[str]:
    return sorted(
        f"{full_name}.{method}"
        for full_name, methods in SIGNATURES.items()
        for method in methods
        if full_name != OPTION_CLASS and inspect.getattr_static(find_class(full_name), method, None) is None
        and not hasattr(find_class(full_name), method)
    )  # fmt: skip


def test_methods_that_are_not_offered_are_listed() -> None:
    assert list_missing() == sorted(NOT_OFFERED)
    assert len(NOT_OFFERED) <= LONGEST
    assert all(len(reason) > 10 for reason in NOT_OFFERED.values())


def list_shared(full_name: str) -> list[tuple[str, Any, inspect.Signature]]:
    """Return the methods of a class that both packages have, with both signatures."""
    owner, found = find_class(full_name), []
    for method, recorded in SIGNATURES[full_name].items():
        offered = inspect.getattr_static(owner, method, None)
        if method == "__init__" or offered is None or isinstance(offered, property):
            continue
        given = inspect.signature(getattr(owner, method))
        if not any(p.kind is p.VAR_KEYWORD for p in given.parameters.values()):
            found.append((method, recorded, given))
    return found


def test_methods_take_the_parameters_of_pypaimon() -> None:
    lacking = [
        f"{full_name}.{method}({name})"
        for full_name in sorted(SIGNATURES)
        for method, peer, own in list_shared(full_name)
        for name in peer["parameters"]
        if name not in own.parameters
    ]
    assert lacking == []


def test_parameters_have_the_defaults_of_pypaimon() -> None:
    different = set()
    for full_name in SIGNATURES:
        for method, peer, own in list_shared(full_name):
            for name, default in peer["parameters"].items():
                parameter = own.parameters[name]
                given = None if parameter.default is parameter.empty else repr(parameter.default)
                if given != normalize_default(default):
                    different.add(f"{method}({name})")
    assert different == OPTIONAL_HERE


def normalize_default(text: str | None) -> str | None:
    """Return the text of a default as `repr` writes it; names of constants stay."""
    try:
        return None if text is None else repr(ast.literal_eval(text))
    except ValueError:
        return text


def test_methods_return_what_those_of_pypaimon_return() -> None:
    different = {
        f"{full_name.rpartition('.')[2]}.{method}"
        for full_name in SIGNATURES
        for method, peer, own in list_shared(full_name)
        if peer["returns"] not in (None, "Any") and own.return_annotation != "Any"
        and find_kind(own.return_annotation, full_name) != find_kind(peer["returns"], full_name)
    }  # fmt: skip
    assert different == OTHER_CLASSES


def find_kind(annotation: object, owner: str) -> str:
    """Return the class that an annotation of a method of `owner` names, without optionality and parameters."""
    text = str(annotation).replace("'", "").replace("pyarrow.ipc.", "pa.").replace("pyarrow.", "pa.")
    text = re.sub(r"^Optional\[(.*)\]$", r"\1", text).partition("[")[0].removesuffix(" | None")
    text = owner.rpartition(".")[2] if text in ("Self", "self") else text
    return text.replace("AsyncGenerator", "AsyncIterator").lower()


def test_options_are_read_by_their_names() -> None:
    options = CoreOptions(Options({"bucket": "4", "scan.tag-name": "t", "deletion-vectors.enabled": "true"}))
    assert (options.bucket(), options.scan_tag_name(), options.deletion_vectors_enabled()) == (4, "t", True)
    assert CoreOptions.TARGET_FILE_SIZE.key() == "target-file-size"
    assert options.target_file_size() == CoreOptions.TARGET_FILE_SIZE.default_value()
    assert (options.target_file_size(True), options.target_file_size(False)) == (128 << 20, 256 << 20)
    assert options.merge_engine("first-row") == "first-row"
    with pytest.raises(AttributeError, match="CoreOptions has no option 'buckets'"):
        options.buckets()


def describe_value(value: object) -> str:
    kind = type(value).__name__
    return f"enum {kind}.{value.name}" if isinstance(value, Enum) else f"{kind} {value!r}"


def test_methods_of_options_return_the_defaults_of_pypaimon() -> None:
    options = CoreOptions(Options({}))
    recorded = json.loads((HERE / "peer_core_options.json").read_text("utf8"))
    found = {name: describe_value(getattr(options, name)()) for name in recorded if hasattr(options, name)}
    different = {name for name, text in found.items() if text != recorded[name]}
    assert different == {"postpone_batch_write_fixed_bucket", "blob_target_file_size", "vector_target_file_size"}
    missing = [name for name in recorded if name not in found and not OTHER_OPTIONS.search(name)]
    assert missing == []


def test_an_attribute_that_is_not_offered_names_the_page(tmp_path: Path) -> None:
    import paimon
    from paimon.compat.catalog import FileSystemCatalog

    catalog = FileSystemCatalog(paimon.connect(tmp_path))
    with pytest.raises(AttributeError, match=r"does not offer FileSystemCatalog.commit_snapshot.*move-from-pypaimon"):
        catalog.commit_snapshot()  # type: ignore[attr-defined]


@pytest.mark.long
def test_the_signatures_are_those_of_pypaimon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(HERE))
    from peer_signatures import read_signatures  # type: ignore[import-not-found]

    download = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(tmp_path), PEER]
    subprocess.run(download, check=True)
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(tmp_path / "peer")
    homes = {module: sorted(names) for module, names in HOMES.items()}
    assert read_signatures(tmp_path / "peer", homes) == SIGNATURES
