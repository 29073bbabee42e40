"""The log: one line for each event, none without a configuration, and none with a secret."""

from __future__ import annotations

import ast
import logging
import re
from pathlib import Path

import pytest
from attrs import evolve

import paimon
from paimon.adapters.files.fsspec_files import FsspecFiles
from paimon.adapters.files.request_retry import RequestRetry
from paimon.adapters.logs import LoggingObserver, log_event
from paimon.adapters.observers import CountingObserver
from paimon.adapters.snapshots.commits import PutIfAbsentSnapshotCommit
from paimon.domain.commit.retry import RetryPolicy
from paimon.ports.observer import EVENTS, METRICS, Event
from paimon.table import Table

PACKAGE = Path(__file__).resolve().parents[2] / "paimon"


@pytest.fixture
def orders(tmp_path: Path) -> Table:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("shop")
    options = {"bucket": "1", "snapshot.num-retained.min": "1", "snapshot.num-retained.max": "1"}
    return catalog.create_table("shop.orders", "id INT NOT NULL, a INT", primary_keys=["id"], options=options)


def test_commits_compactions_and_expiries_are_a_line_each(orders: Table, caplog) -> None:
    caplog.set_level(logging.INFO, "paimon")
    for number in range(2):
        orders.write([{"id": number, "a": 1}])
    orders.compact(full=True)
    orders.maintain.expire_snapshots()
    lines = [(r.name, r.levelname) for r in caplog.records]
    assert lines.count(("paimon.commit", "INFO")) == 2
    assert ("paimon.compaction", "INFO") in lines and ("paimon.expiry", "INFO") in lines
    first = caplog.records[0]
    assert re.fullmatch(
        rf"commit {orders.location} snapshot_id=1 kind=APPEND rows=1 files=1 retries=0 millis=\d+", first.getMessage()
    )
    assert first.paimon_event.values["rows"] == 1
    assert all(set(r.paimon_event.values) <= set(EVENTS[r.paimon_event.name]) for r in caplog.records)


def test_a_lost_race_and_a_conflict_are_logged(orders: Table, caplog) -> None:
    caplog.set_level(logging.INFO, "paimon.retry")
    impatient = orders.with_options({"commit.max-retries": "1", "commit.min-retry-wait": "1 ms"})

    class AlwaysSecond(PutIfAbsentSnapshotCommit):
        def publish(self, paths, snapshot, base):
            orders.write([{"id": 2, "a": 1}])
            return super().publish(paths, snapshot, base)

    loser = impatient.with_engine(evolve(impatient.engine, snapshots=AlwaysSecond(orders.engine.files)))
    with pytest.raises(paimon.CommitConflict):
        loser.write([{"id": 1, "a": 2}])
    found = [r for r in caplog.records if r.name in ("paimon.retry", "paimon.conflict")]
    assert [r.name for r in found] == ["paimon.retry", "paimon.conflict"]
    assert "reason=Commit failed: 2 concurrent commits were published first" in found[1].getMessage()


def test_requests_that_are_slow_or_repeated_are_logged_without_signatures(caplog) -> None:
    replies = iter([ConnectionError("GET https://h/f?X-Amz-Signature=abcdef"), None])

    def request() -> int:
        if (error := next(replies)) is not None:
            raise error
        return 5

    retry = RequestRetry(RetryPolicy(min_wait_millis=0), lambda error: True, slow_millis=0)
    assert retry.send(request, "https://me:hunter22@host/f?X-Amz-Signature=abcdef&region=eu") == 5
    assert [r.name for r in caplog.records] == ["paimon.slow_request", "paimon.request_retry", "paimon.slow_request"]
    for secret in ("abcdef", "hunter22"):
        assert secret not in caplog.text


def test_the_threshold_is_a_storage_option(caplog) -> None:
    files = FsspecFiles("memory://slow", {"slow_request": "0 ms"})
    files.replace("memory://slow/a", b"1")
    assert any(r.name == "paimon.slow_request" for r in caplog.records)
    with pytest.raises(paimon.InvalidRequest, match="slow_request"):
        FsspecFiles("memory://slow", {"slow_request": "soon"})


def test_secret_options_are_in_no_line(caplog) -> None:
    caplog.set_level(logging.DEBUG, "paimon")
    catalog = paimon.connect("memory://logged", storage={"slow_request": "0 ms", "token": "s3cr3t-token"})
    catalog.create_database("shop")
    catalog.create_table("shop.orders", "id INT").write([{"id": 1}])
    assert "paimon.commit" in {r.name for r in caplog.records}
    assert "s3cr3t" not in caplog.text


def test_a_value_cannot_forge_a_line(caplog) -> None:
    log_event(Event("conflict", "lake/a\nCRITICAL:root:forged", {"reason": "x\r\ny"}))
    assert "\n" not in caplog.records[0].getMessage() and "\r" not in caplog.records[0].getMessage()


def test_nothing_is_printed_without_a_configuration(capsys, monkeypatch) -> None:
    monkeypatch.setattr(logging.getLogger("paimon"), "propagate", False)  # pytest configures the root logger
    log_event(Event("conflict", "lake", {"reason": "x"}))
    assert capsys.readouterr() == ("", "")


def test_an_observer_of_ones_own_replaces_the_log_or_extends_it(orders: Table, caplog) -> None:
    caplog.set_level(logging.INFO, "paimon")
    orders.with_engine(evolve(orders.engine, observer=CountingObserver())).write([{"id": 1, "a": 1}])
    assert caplog.records == []

    names = []

    class Both(LoggingObserver):
        def event(self, event: Event) -> None:
            super().event(event)
            names.append(event.name)

    orders.with_engine(evolve(orders.engine, observer=Both())).write([{"id": 2, "a": 1}])
    assert "commit" in names and caplog.records


def test_the_listing_has_every_metric_and_event_of_the_code() -> None:
    counted: set[str] = set()
    reported: set[str] = set()
    values: dict[str, set[str]] = {}
    for path in PACKAGE.rglob("*.py"):
        text = path.read_text("utf8")
        for node in ast.walk(ast.parse(text)) if "observer.count" in text or "report_event" in text else ():
            if not isinstance(node, ast.Call):
                continue
            texts = [n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            if isinstance(node.func, ast.Attribute) and node.func.attr == "count" and "observer" in ast.unparse(node):
                counted |= {text for text in texts if "." in text}
            if isinstance(node.func, ast.Name) and node.func.id == "report_event" and len(node.args) > 1:
                names = {n.value for n in ast.walk(node.args[1]) if isinstance(n, ast.Constant)} - {"COMPACT"}
                reported |= names
                for name in names:
                    values.setdefault(name, set()).update(k.arg for k in node.keywords if k.arg)
    prefixes = tuple(text for text in counted if text.endswith("."))  # of a name that is put together
    assert counted - set(prefixes) == {name for name in METRICS if name in counted or not name.startswith(prefixes)}
    assert all(any(name.startswith(prefix) for name in METRICS) for prefix in prefixes)
    assert reported == set(EVENTS)
    assert {name: found - set(EVENTS[name]) for name, found in values.items() if found - set(EVENTS[name])} == {}
