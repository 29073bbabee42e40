"""The path of a data file outside its table follows from its name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paimon.domain.options.table_options import TableOptions
from paimon.domain.schema.external_paths import ExternalPaths, find_external_paths, hash_name, read_external_paths

HASHES = {
    "": 0, "a": 1009084850, "hello": 613153351, "world": -74040069, "test": -1167338989,
    "data-abc.blob": 894520562, "data-xyz.blob": -822867934,
}  # fmt: skip
"""The values of Guava, which the tests of pypaimon list."""
PATHS = "data-file.external-paths"


@pytest.mark.parametrize("name", HASHES)
def test_names_have_the_hash_of_guava(name: str) -> None:
    assert hash_name(name) == HASHES[name] % (1 << 32)


def test_the_directories_of_a_hash_are_its_low_bits() -> None:
    paths = ExternalPaths(("s3://b/x",), has_entropy=True, location="/lake/t")
    bits = f"{hash_name('data-abc.blob'):032b}"[12:]
    expected = f"s3://b/x/p=1/bucket-0/{bits[:4]}/{bits[4:8]}/{bits[8:12]}/{bits[12:]}/data-abc.blob"
    assert paths.path_of("/lake/t/p=1/bucket-0", "data-abc.blob") == expected


@given(st.uuids(), st.integers(1, 4))
def test_the_files_of_a_writer_take_the_roots_in_turn(writer: object, roots: int) -> None:
    paths = ExternalPaths(tuple(f"s3://b/{i}" for i in range(roots)), location="/t")
    found = [paths.path_of("/t/bucket-0", f"data-{writer}-{i}.parquet") for i in range(2 * roots)]
    chosen = [path.split("/")[3] for path in found]
    assert chosen[:roots] == chosen[roots:]
    assert len(set(chosen)) == roots


def test_weights_choose_in_proportion() -> None:
    paths = ExternalPaths(("s3://a", "s3://b"), weight_sums=(90, 100))
    chosen = [paths.path_of("", f"data-{i}.parquet").startswith("s3://a/") for i in range(2000)]
    assert 1740 < sum(chosen) < 1860


@pytest.mark.parametrize(
    "options",
    [
        {},
        {PATHS: "s3://b/x"},
        {PATHS: "/no/scheme", f"{PATHS}.strategy": "none"},
        {PATHS: " ", f"{PATHS}.strategy": "round-robin"},
        {f"{PATHS}.strategy": "round-robin"},
    ],
)
def test_files_stay_in_the_table_without_a_strategy_or_without_paths(options: dict[str, str]) -> None:
    assert read_external_paths(TableOptions.of(options)) is None
    assert find_external_paths(TableOptions.of(options), "/t", ()) is None


def test_weights_of_one_path_are_not_used() -> None:
    options = {PATHS: "s3://b/x/", f"{PATHS}.strategy": "weight-robin", f"{PATHS}.weights": "7"}
    assert read_external_paths(TableOptions.of(options)) == ExternalPaths(("s3://b/x",))
    assert read_external_paths(TableOptions.of({PATHS: "s3://b/x,s3://c", f"{PATHS}.strategy": "weight-robin"})) == (
        ExternalPaths(("s3://b/x", "s3://c"))
    )
