"""Names from any source are single path segments, and no link leads out of the table."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import paimon
from paimon.domain.errors import CorruptTable, InvalidRequest, NotFound, PaimonError
from paimon.domain.manifest.entry_codec import entry_from_record
from paimon.domain.paths import TablePaths, check_segment, check_stored_segment, check_within

BAD = {
    "up": "..",
    "here": ".",
    "empty": "",
    "path up": "../x",
    "path": "a/b",
    "absolute": "/etc/passwd",
    "NUL": "a\0b",
    "backslash": "..\\x",
    "drive": "C:\\x",
    "line": "a\nb",
    "delete": "a\x7f",
    "half a character": "a\ud800",
    "file url": "file:///etc/passwd",
    "url": "s3://bucket/key",
}
GOOD = {
    "percent": "%2e%2e%2fx",
    "trailing dots": "a..",
    "leading dots": "...a",
    "umlaut": "größe",
    "another script": "表",
    "wide slash": "a\uff0fb",
    "blank": "a b",
    "quotes": "a'b\"c",
    "star": "a*",
}
LONG = "n" * 300


@pytest.mark.parametrize("name", BAD.values(), ids=BAD)
def test_bad_names_are_no_segments(name: str) -> None:
    with pytest.raises(InvalidRequest):
        check_segment(name)
    with pytest.raises(CorruptTable, match="manifest-7"):
        check_stored_segment(name, "manifest-7")


@given(st.text(max_size=8) | st.text("./\\%\0:a", max_size=6))
def test_a_segment_never_leaves_its_directory(name: str) -> None:
    paths = TablePaths("/lake/t")
    for make in (paths.tag, paths.branch_directory, paths.manifest, paths.index, paths.statistics):
        try:
            path = make(name)
        except PaimonError:
            continue
        assert path == check_within(path, ["/lake/t"], "s")
        assert path.count("/") == make("x").count("/")
    try:
        below = paths.bucket_directory("k=v", 0, name)
    except InvalidRequest:
        return
    assert check_within(below, ["/lake/t"], "s")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("d")
    table = catalog.create_table("d.t", "k INT NOT NULL, v STRING", primary_keys=["k"], options={"bucket": "1"})
    table.write([{"k": 1, "v": "a"}, {"k": 2, "v": "b"}])
    yield tmp_path
    outside = [p for p in tmp_path.iterdir() if p.name not in ("lake", "elsewhere")]
    assert not outside, f"something was created outside the warehouse: {outside}"


def uses(home: Path) -> dict[str, Callable[[str], object]]:
    """Everything that takes a name."""
    catalog = paimon.connect(home / "lake")
    table = catalog.table("d.t")
    ddl = "k INT"
    return {
        "create_database": catalog.create_database,
        "drop_database": lambda n: catalog.drop_database(n, cascade=True),
        "tables": catalog.tables,
        "create_table": lambda n: catalog.create_table(f"d.{n}", ddl),
        "create_table in": lambda n: catalog.create_table(f"{n}.t", ddl),
        "table": lambda n: catalog.table(f"d.{n}"),
        "drop_table": lambda n: catalog.drop_table(f"d.{n}"),
        "rename_table": lambda n: catalog.rename_table("d.t", f"d.{n}"),
        "branch of a table": lambda n: catalog.table(f"d.t$branch_{n}"),
        "open_table": lambda n: paimon.open_table(home / "lake" / "d.db" / "t", {"branch": n}),
        "tag": lambda n: table.tags.create(n),
        "tag to read": lambda n: table.scan(tag=n).to_arrow(),
        "tag to drop": lambda n: table.tags.delete(n),
        "branch": lambda n: table.branches.create(n),
        "branch to drop": lambda n: table.branches.delete(n),
        "consumer": lambda n: table.consumers.reset(n, 1),
        "consumer to drop": lambda n: table.consumers.delete(n),
        "option tag": lambda n: table.with_options({"scan.tag-name": n}).scan().to_arrow(),
        "option branch": lambda n: catalog.table("d.t", {"branch": n}).scan().to_arrow(),
    }


@pytest.mark.parametrize("name", [*BAD, "long"])
def test_bad_names_are_refused_everywhere(home: Path, name: str) -> None:
    before = sorted(p for p in home.rglob("*") if p.is_file())
    for use, call in uses(home).items():
        if name == "empty" and use in ("option branch", "option tag", "open_table"):  # an option without a value
            continue
        with pytest.raises(PaimonError) as caught:
            call(LONG if name == "long" else BAD[name])
        assert len(str(caught.value)) < 2_000, use
    assert sorted(p for p in home.rglob("*") if p.is_file()) == before


@pytest.mark.parametrize("name", GOOD)
def test_odd_names_are_names(home: Path, name: str) -> None:
    table = paimon.connect(home / "lake").table("d.t")
    table.tags.create(GOOD[name])
    table.branches.create(GOOD[name], tag=GOOD[name])
    table.consumers.reset(GOOD[name], 1)
    assert table.scan(tag=GOOD[name]).to_arrow().num_rows == 2
    assert (GOOD[name] in table.tags, GOOD[name] in table.consumers) == (True, True)
    root = home / "lake" / "d.db" / "t"
    assert (root / "tag" / f"tag-{GOOD[name]}").is_file()
    assert (root / "branch" / f"branch-{GOOD[name]}").is_dir()


@pytest.mark.parametrize(
    "option", ["data-file.path-directory", "data-file.prefix", "changelog-file.prefix", "partition.default-name"]
)
@pytest.mark.parametrize("value", ["../../../outside", "/../../../../outside/", "a/../../../../outside-"])
def test_options_of_a_schema_do_not_lead_out(home: Path, option: str, value: str) -> None:
    before = {p for p in home.rglob("*") if p.is_file()}
    root = home / "lake" / "d.db" / "t"
    schema = root / "schema" / "schema-0"
    text = schema.read_text().replace('"bucket" : "1"', f'"bucket" : "1", "{option}" : "{value}"')
    schema.write_text(text.replace('"bucket"', '"changelog-producer" : "input", "bucket"', 1))
    for use in (
        lambda t: t.write([{"k": 3, "v": "c"}]),
        lambda t: t.scan().to_arrow(),
        lambda t: t.maintain.remove_orphans(timedelta(0), allow_young=True, dry_run=False),
    ):
        try:
            use(paimon.open_table(root))
        except PaimonError:
            continue
    made = {p for p in home.rglob("*") if p.is_file()} - before
    assert all(p.is_relative_to(root) for p in made)
    assert before <= {p for p in home.rglob("*") if p.is_file()}


@pytest.mark.parametrize("name", BAD.values(), ids=BAD)
@pytest.mark.parametrize("member", ["_FILE_NAME", "_EXTRA_FILES"])
def test_names_in_manifests_are_segments(name: str, member: str) -> None:
    stats = {"_MIN_VALUES": bytes(12), "_MAX_VALUES": bytes(12), "_NULL_COUNTS": []}
    file = {
        "_FILE_NAME": "f", "_FILE_SIZE": 1, "_ROW_COUNT": 1, "_MIN_KEY": bytes(12), "_MAX_KEY": bytes(12),
        "_KEY_STATS": stats, "_VALUE_STATS": stats, "_MIN_SEQUENCE_NUMBER": 0, "_MAX_SEQUENCE_NUMBER": 0,
        "_SCHEMA_ID": 0, "_LEVEL": 0, "_EXTRA_FILES": [], "_CREATION_TIME": 0,
    }  # fmt: skip
    record = {"_VERSION": 2, "_KIND": 0, "_PARTITION": bytes(12), "_BUCKET": 0, "_TOTAL_BUCKETS": 1, "_FILE": file}
    entry_from_record(record, "manifest-7")
    file[member] = [name] if member == "_EXTRA_FILES" else name
    with pytest.raises(CorruptTable, match="manifest-7"):
        entry_from_record(record, "manifest-7")


PLACES = ("snapshot", "schema", "manifest", "bucket-0", "snapshot/snapshot-1", "schema/schema-0", "snapshot/LATEST")


@pytest.mark.parametrize("place", PLACES)
def test_links_do_not_lead_out_of_the_table(home: Path, place: str) -> None:
    root, elsewhere = home / "lake" / "d.db" / "t", home / "elsewhere"
    elsewhere.mkdir()
    target = elsewhere / "precious"
    shutil.move(root / place, target)
    (root / place).symlink_to(target)
    entries_before = sorted(p for p in elsewhere.rglob("*"))
    table = None
    try:
        table = paimon.open_table(root)
        read = table.scan().to_arrow()
        assert place == "snapshot/LATEST"  # an unreadable hint is ignored
        assert read.num_rows == 2
    except (CorruptTable, NotFound) as error:
        assert place.split("/")[0] in str(error) or isinstance(error, NotFound)
    for use in (
        lambda t: t.write([{"k": 3, "v": "c"}]),
        lambda t: t.maintain.remove_orphans(timedelta(0), allow_young=True, dry_run=False),
        lambda t: t.maintain.expire_snapshots(retain_max=1, retain_min=1),
        lambda t: t.compact(full=True),
    ):
        try:
            use(table or paimon.open_table(root))
        except PaimonError:
            continue
    assert sorted(p for p in elsewhere.rglob("*")) == entries_before


def test_links_within_and_trusted_ones_are_followed(home: Path) -> None:
    root, elsewhere = home / "lake" / "d.db" / "t", home / "elsewhere"
    shutil.move(root / "bucket-0", elsewhere)
    (root / "bucket-0").symlink_to(elsewhere)
    with pytest.raises(CorruptTable, match="symbolic link"):
        paimon.open_table(root).scan().to_arrow()
    assert paimon.open_table(root, allowed_roots=[elsewhere]).scan().to_arrow().num_rows == 2
    (root / "bucket-0").unlink()
    shutil.move(elsewhere, root / "inside")
    (root / "bucket-0").symlink_to(root / "inside")
    assert paimon.open_table(root).scan().to_arrow().num_rows == 2


def test_a_warehouse_may_be_a_link_itself(home: Path) -> None:
    (home / "elsewhere").symlink_to(home / "lake")
    table = paimon.connect(home / "elsewhere").table("d.t")
    table.write([{"k": 3, "v": "c"}])
    assert table.scan().to_arrow().num_rows == 3


def test_a_table_that_is_a_link_is_none_of_the_warehouse(home: Path) -> None:
    shutil.move(home / "lake" / "d.db" / "t", home / "elsewhere")
    (home / "lake" / "d.db" / "t").symlink_to(home / "elsewhere")
    assert paimon.connect(home / "lake").tables("d") == []
    assert paimon.open_table(home / "lake" / "d.db" / "t").scan().to_arrow().num_rows == 2


def test_names_that_listings_hide_are_not_given(home: Path) -> None:
    catalog = paimon.connect(home / "lake")
    for call in (
        lambda: catalog.create_database(".hidden"),
        lambda: catalog.create_table("d..hidden", "a INT"),
        lambda: catalog.rename_table("d.t", "d..hidden"),
    ):
        with pytest.raises(PaimonError, match="must not begin with a dot"):
            call()
