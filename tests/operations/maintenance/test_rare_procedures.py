"""Manifests that are merged at once, purged tables, finished partitions, and rollbacks to a watermark."""

from __future__ import annotations

import json
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from attrs import evolve
from support.tables import create_table

import paimon
from paimon.domain.errors import InvalidRequest, NotFound, StorageError, Unsupported
from paimon.domain.snapshot.snapshot import CommitKind
from paimon.ports.callbacks import PartitionDoneEvent


def make_table(home: Path, writes: int = 4, **options: str) -> paimon.Table:
    layout = {"primary_keys": ["id", "day"], "partition_keys": ["day"]}
    table = create_table(home, "id INT NOT NULL, day STRING NOT NULL", options={"bucket": "1", **options}, **layout)
    for number in range(writes):
        table.write([{"id": number, "day": f"d{number % 2}"}], watermark=10 * (number + 1))
    return table


def test_manifests_are_merged_below_the_limits(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    before = table.scan().to_arrow()
    assert table.maintain.compact_manifests(dry_run=True).manifests_before == 4
    assert len(table.snapshots()) == 4
    done = table.maintain.compact_manifests()
    assert (done.snapshot_id, done.manifests_before, done.manifests_after) == (5, 4, 1)
    newest = table.snapshot()
    assert newest is not None
    assert (newest.commit_kind, newest.delta_record_count) == (CommitKind.COMPACT, 0)
    assert table.scan().to_arrow() == before
    assert table.maintain.check(deep=True).faults == ()
    again = table.maintain.compact_manifests()
    assert (again.snapshot_id, len(table.snapshots())) == (None, 5)


def test_full_manifests_that_share_partitions_are_sorted_by_partition(tmp_path: Path) -> None:
    sizes = {"manifest.target-file-size": "2 kb", "manifest.compression": "none"}  # names of files compress differently
    table = create_table(tmp_path, "id INT, day INT", partition_keys=["day"], options=sizes)
    for number in range(6):
        table.write([{"id": number, "day": day} for day in range(12)])
    before = table.scan().to_arrow().sort_by([("day", "ascending"), ("id", "ascending")])
    assert table.maintain.compact_manifests().snapshot_id == 7
    steps = {step.name: step for step in table.scan(where="day = 3").plan().steps}
    assert steps["manifests"].after * 3 < steps["manifests"].before
    assert steps["live files"].after == 6
    assert table.scan().to_arrow().sort_by([("day", "ascending"), ("id", "ascending")]) == before
    assert table.maintain.check().faults == ()
    assert table.maintain.compact_manifests().snapshot_id is None


def test_a_merge_of_manifests_drops_deletes_with_their_files(tmp_path: Path) -> None:
    table = make_table(tmp_path, writes=2)
    table.overwrite([{"id": 7, "day": "d0"}], {"day": "d0"})
    done = table.maintain.compact_manifests()
    assert done.manifests_after == 1
    manifests = table.system_table("manifests").scan().to_arrow()
    assert manifests["num_deleted_files"].to_pylist() == [0]
    assert table.scan().count() == 2


def test_a_purge_leaves_an_empty_table(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    table.tags.create("one", 1)
    table.branches.create("trial", "one")
    table.consumers.reset("slow", 2)
    done = table.maintain.purge()
    assert (done.snapshot_id, done.branches, done.tags, done.consumers, done.snapshots) == (5, 1, 1, 1, 4)
    assert ([s.id for s in table.snapshots()], table.scan().count()) == ([5], 0)
    assert not list(Path(table.location).rglob("*.parquet"))
    assert table.maintain.check(deep=True).faults == ()
    table.write([{"id": 1, "day": "d0"}])
    assert table.scan().count() == 1
    assert create_table(tmp_path, "id INT", "db.new").maintain.purge().snapshot_id is None


def test_a_done_partition_has_a_success_file(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    [path] = table.maintain.mark_partitions_done({"day": "d1"})
    assert Path(path) == Path(table.location) / "day=d1" / "_SUCCESS"
    first = json.loads(Path(path).read_text())
    assert table.maintain.mark_partitions_done({"day": "d1"}) == [path]
    again = json.loads(Path(path).read_text())
    assert again["creationTime"] == first["creationTime"] <= again["modificationTime"]
    with pytest.raises(NotFound, match="Partition 'day=d7'"):
        table.maintain.mark_partitions_done({"day": "d0"}, {"day": "d7"})
    assert not (Path(table.location) / "day=d0" / "_SUCCESS").exists()
    with pytest.raises(InvalidRequest, match="No partition"):
        table.maintain.mark_partitions_done()


class _Server(BaseHTTPRequestHandler):
    """Accepts reports of the partition d0 only."""

    got: ClassVar[list[dict[str, object]]] = []

    def do_POST(self) -> None:
        report = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.got.append(report)
        answer = json.dumps({"result": "success" if report["partition"] == "day=d0/" else "failed"}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_: object) -> None:
        pass


def test_partitions_are_reported_and_given_to_a_callback(tmp_path: Path) -> None:
    events: list[object] = []
    server = HTTPServer(("127.0.0.1", 0), _Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    options = {
        "partition.mark-done-action": "custom, http-report,success-file",
        "partition.mark-done-action.custom.class": "done",
        "partition.mark-done-action.http.url": f"http://127.0.0.1:{server.server_port}/done",
        "partition.mark-done-action.http.params": "team=a",
    }
    table = make_table(tmp_path, **options)
    with pytest.raises(Unsupported, match="without a callable for 'done'"):
        table.maintain.mark_partitions_done({"day": "d0"})
    watched = table.with_callbacks({"done": events.append})
    assert len(watched.maintain.mark_partitions_done({"day": "d0"})) == 1
    assert _Server.got == [{"params": "team=a", "table": table.name, "path": table.location, "partition": "day=d0/"}]
    [event] = events
    assert isinstance(event, PartitionDoneEvent) and event.partition == {"day": "d0"}
    with pytest.raises(StorageError, match="refused"):
        watched.maintain.mark_partitions_done({"day": "d1"})
    server.shutdown()
    server.server_close()
    with pytest.raises(StorageError, match="not accepted"):
        watched.maintain.mark_partitions_done({"day": "d0"})
    for changed, error in (({_URL: "file:///etc/passwd"}, "not an HTTP URL"), ({_URL: None}, "is not set")):
        with pytest.raises(InvalidRequest, match=error):
            watched.with_options(changed).maintain.mark_partitions_done({"day": "d0"})


_URL = "partition.mark-done-action.http.url"


def test_other_actions_of_done_partitions_are_refused(tmp_path: Path) -> None:
    table = make_table(tmp_path, writes=1)
    schema = Path(table.location) / "schema" / "schema-0"  # as another writer may have made it
    made = json.loads(schema.read_text())
    made["options"]["partition.mark-done-action"] = "mark-event"
    schema.write_text(json.dumps(made))
    with pytest.raises(Unsupported, match="mark-event"):
        paimon.open_table(table.location).maintain.mark_partitions_done({"day": "d0"})


def test_a_bad_response_shows_no_password(tmp_path: Path) -> None:
    class Replies:
        def post(self, url: str, body: bytes) -> bytes:
            return b"<html>"

    options = {"partition.mark-done-action": "http-report", _URL: "http://me:secret@host/done"}
    table = make_table(tmp_path, writes=1, **options)
    table = evolve(table, context=evolve(table.context, engine=evolve(table.context.engine, reports=Replies())))
    with pytest.raises(StorageError, match="did not respond with a JSON object") as caught:
        table.maintain.mark_partitions_done({"day": "d0"})
    assert "secret" not in str(caught.value) and "secret" not in str(caught.value.__cause__)
    with pytest.raises(InvalidRequest, match="names no action"):
        table.with_options({"partition.mark-done-action": " , "}).maintain.mark_partitions_done({"day": "d0"})


@pytest.mark.parametrize(("watermark", "snapshot"), [(10, 1), (25, 2), (99, 4)])
def test_a_rollback_to_a_watermark(tmp_path: Path, watermark: int, snapshot: int) -> None:
    table = make_table(tmp_path)
    assert table.maintain.rollback_to(watermark=watermark).snapshot_id == snapshot
    assert table.scan().count() == snapshot


def test_a_rollback_needs_a_snapshot_with_a_watermark(tmp_path: Path) -> None:
    table = make_table(tmp_path)
    with pytest.raises(NotFound, match="watermark of at most '5'"):
        table.maintain.rollback_to(watermark=5)
    with pytest.raises(InvalidRequest, match="exactly one"):
        table.maintain.rollback_to(1, watermark=5)


def test_due_tags_are_created_on_request(tmp_path: Path) -> None:
    options = {"tag.automatic-creation": "watermark", "tag.creation-period": "daily", "write-only": "true"}
    table = make_table(tmp_path, writes=0, **options)
    day = 86_400_000
    table.write([{"id": 1, "day": "d0"}], watermark=20_000 * day + 5)
    assert not table.tags
    assert table.tags.create_due() == list(table.tags) != []
    assert table.tags.create_due() == []


def test_tables_of_a_catalog_are_compacted_by_their_names(tmp_path: Path) -> None:
    for name in ("db.one", "db.two", "other.one"):
        table = create_table(tmp_path, "id INT NOT NULL", name, primary_keys=["id"], options={"bucket": "1"})
        for number in range(2):
            table.with_options({"write-only": "true"}).write([{"id": number}])
    catalog = paimon.connect(tmp_path)
    call = "CALL sys.compact_database(including_databases => 'db', excluding_tables => '.*two')"
    [row] = catalog.sql(call).to_arrow().to_pylist()
    assert (row["table"], row["buckets"], row["files_before"], row["files_after"]) == ("db.one", 1, 2, 1)
    with pytest.raises(InvalidRequest, match="regular expression"):
        catalog.sql("CALL sys.compact_database('(')")
    with pytest.raises(InvalidRequest, match="Compact strategy 'big'"):
        catalog.table("db.two").call("sys.compact", compact_strategy="big")
