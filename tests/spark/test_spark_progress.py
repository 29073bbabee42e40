"""Long work on Spark reports its progress while its tasks run, and stops its tasks when it fails."""

from __future__ import annotations

import pickle
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from itertools import takewhile
from pathlib import Path

import pyarrow as pa
import pytest
from attrs import evolve
from py4j.protocol import Py4JNetworkError
from pyspark import SparkContext, TaskContext
from pyspark.sql import SparkSession
from pyspark.sql.classic.dataframe import DataFrame

import paimon
import paimon.spark
from paimon.adapters.executors.spark import distribute_tasks
from paimon.adapters.observers import SilentObserver
from paimon.domain.commit.message_codec import encode
from paimon.domain.errors import StorageError
from paimon.engines import spark_executor
from paimon.spark.tasks.message_tasks import FinishedTasks, report_finished_task, run_message_tasks, watch_tasks

pytestmark = pytest.mark.spark
PATIENCE_SECONDS = 90
LAST_ATTEMPT = 3  # of four, as tests/conftest.py sets
TASKS = 12
REWRITE_ALL = {"compaction.force-rewrite-all-files": True}


class ListingObserver(SilentObserver):
    """Lists the progress of all activities, and creates a file at the first call."""

    def __init__(self, seen: Path | None = None) -> None:
        self.calls: list[tuple[str, int, int | None]] = []
        self.seen = seen

    def progress(self, activity: str, done: int, total: int | None = None) -> None:
        """List the call."""
        self.calls.append((activity, done, total))
        if self.seen is not None:
            self.seen.touch()

    def of(self, activity: str) -> list[tuple[int, int | None]]:
        return [call[1:] for call in self.calls if call[0] == activity]


def wait_for(seen: Path) -> None:
    """Wait until the driver has seen the result of another task."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not seen.exists():
        assert time.monotonic() < end, "the driver saw no result while this task ran"
        time.sleep(0.05)


def wait_in_last_task(seen: str, task: int) -> int:
    if task == TASKS - 1:
        wait_for(Path(seen))
    return 2 * task


def test_results_arrive_while_other_tasks_run(spark: SparkSession, tmp_path: Path) -> None:
    seen, found = tmp_path / "seen", []
    executor = spark_executor(spark, pickle.dumps, pickle.loads)
    for result in executor.map(partial(wait_in_last_task, str(seen)), range(TASKS)):
        found.append(result)
        seen.touch()
    assert found == [2 * task for task in range(TASKS)]


class WriteOfTask:
    """A writing task; the last one waits until the observer was called."""

    def __init__(self, seen: Path, finished: FinishedTasks) -> None:
        self.seen = str(seen)
        self.finished = finished

    def __call__(self, batches: Iterator[pa.RecordBatch]) -> bytes:
        if [number for batch in batches for number in batch["position"].to_pylist()] == [TASKS - 1]:
            wait_for(Path(self.seen))
        report_finished_task(self.finished)
        return encode([])


def test_tasks_of_a_shuffle_report_while_others_run(spark: SparkSession, tmp_path: Path) -> None:
    observer = ListingObserver(tmp_path / "seen")
    finished = watch_tasks(spark, observer, "writing", TASKS)
    frame = distribute_tasks(spark, range(TASKS))
    assert list(run_message_tasks(frame, WriteOfTask(tmp_path / "seen", finished))) == []
    assert observer.of("writing") == [(n + 1, TASKS) for n in range(TASKS)]


def make_table(catalog: paimon.Catalog, name: str, bucket: int) -> tuple[paimon.Table, ListingObserver]:
    table = catalog.create_table(
        name, "id BIGINT NOT NULL, v INT", primary_keys=["id"], options={"bucket": bucket, "write-only": True}
    )
    for step in range(3):
        table.write({"id": list(range(60)), "v": pa.array([step] * 60, pa.int32())})
    observer = ListingObserver()
    return table.with_engine(evolve(table.engine, observer=observer)), observer


def test_a_compaction_reports_its_buckets(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table, observer = make_table(catalog, "db.t", 6)
    assert paimon.spark.compact(table, full=True, spark=spark).buckets == 6
    assert observer.of("compacting buckets") == [(n + 1, 6) for n in range(6)]


def test_a_rescale_reports_what_it_reads_and_writes(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table, observer = make_table(catalog, "db.t", 3)
    paimon.spark.rescale(table, 2, spark=spark)
    assert observer.of("reading buckets") == [(n + 1, 3) for n in range(3)]
    assert observer.of("writing new buckets") == [(n + 1, 2) for n in range(2)]


def test_a_compaction_of_postponed_rows_reports_its_tasks(spark: SparkSession, catalog: paimon.Catalog) -> None:
    table, observer = make_table(catalog, "db.t", -2)
    paimon.spark.compact(table, spark=spark)
    for activity in ("reading postponed rows", "compacting postponed rows"):
        calls = observer.of(activity)
        assert calls == [(n + 1, len(calls)) for n in range(len(calls))] != []


class MarkedTask:
    """A task that marks its start; those of the first job let the driver send the others, which wait for the test."""

    def __init__(self, marks: Path, number: int, starts_others: bool, waits: bool) -> None:
        self.marks, self.number, self.starts_others, self.waits = marks, number, starts_others, waits

    def __reduce__(self) -> tuple[object, ...]:
        if self.waits:  # the thread of a job pickles its tasks
            wait_for(self.marks / "send")
        return type(self), (self.marks, self.number, self.starts_others, self.waits)


def run_marked(fails: bool, task: MarkedTask) -> int:
    (task.marks / f"{task.number}").touch()
    if task.starts_others:
        if not fails or TaskContext.get().attemptNumber() == LAST_ATTEMPT:  # else its next attempt needs a core
            (task.marks / "send").touch()
        if fails:
            raise ValueError("the first task fails")
    if task.waits:
        wait_for(task.marks / "end")
    return task.number


@pytest.mark.parametrize("ends", ["fails", "closes"])
def test_tasks_that_did_not_start_do_not_run_after_the_end(spark: SparkSession, tmp_path: Path, ends: str) -> None:
    executor = spark_executor(spark, pickle.dumps, pickle.loads)
    threads, first = threading.active_count(), 10  # each job has 10 of 200 tasks
    starter = 0 if ends == "fails" else first - 1
    tasks = [MarkedTask(tmp_path, n, n == starter, n >= first) for n in range(200)]
    results = executor.map(partial(run_marked, ends == "fails"), tasks)
    if ends == "fails":
        with pytest.raises(StorageError, match="the first task fails"):
            list(results)
    else:
        assert next(results) == 0
        results.close()  # type: ignore[attr-defined]  # an iterator that is a generator
    (tmp_path / "end").touch()
    marks = {path.name for path in tmp_path.iterdir()} - {"send", "end"}
    time.sleep(1)
    assert len(list(tmp_path.iterdir())) - len(marks) <= 2 + spark.sparkContext.defaultParallelism
    assert sum(int(name) >= first for name in marks) <= 8 * spark.sparkContext.defaultParallelism
    end = time.monotonic() + PATIENCE_SECONDS
    while threading.active_count() > threads:
        assert time.monotonic() < end, "the threads of the jobs do not end"
        time.sleep(0.05)
    assert list(executor.map(abs, [-1, -2, -3, -4])) == [1, 2, 3, 4]


def test_jobs_name_their_verb_and_table(spark: SparkSession, catalog: paimon.Catalog) -> None:
    catalog.create_table("db.named", "id BIGINT NOT NULL, n INT", primary_keys=["id"], options={"bucket": 2})
    context, store = spark.sparkContext, spark.sparkContext._jsc.sc().statusStore()
    context.setJobDescription("mine")
    jobs = store.jobsList(None)  # the newest job is first, and the oldest ones are forgotten
    last = jobs.apply(0).jobId() if jobs.size() else -1
    try:
        target = catalog.table("db.named")
        frame = spark.range(4).selectExpr("id", "CAST(id AS INT) AS n")
        paimon.spark.write(frame, target)
        paimon.spark.update(target, {"n": "n + 1"}, "id > 1")
        paimon.spark.merge(frame, target, on="id").when_matched_update({"n": "0"}).execute()
        paimon.spark.delete(target, "id = 0")
        paimon.spark.compact(target, full=True)
        paimon.spark.connect(spark, catalog).sql("CALL sys.fsck(table => 'db.named', deep => true)")
        frame.collect()
        assert context.getLocalProperty("spark.job.description") == "mine"
    finally:
        context.setLocalProperty("spark.job.description", None)
    jobs = store.jobsList(None)
    new = takewhile(lambda job: job.jobId() > last, (jobs.apply(n) for n in range(jobs.size())))
    found = {str(job.description().get()) for job in new}
    verbs = ("write", "update", "merge", "delete", "compact", "maintain")
    assert found == {"mine", *(f"paimon {verb} db.named" for verb in verbs)}


def cancel_once(is_time: Callable[[], bool], token: paimon.CancelToken) -> threading.Thread:
    """Cancel a token in another thread."""

    def run() -> None:
        while not is_time():
            time.sleep(0.05)
        token.cancel()

    thread = threading.Thread(target=run)
    thread.start()
    return thread


def wait_in_last_partition(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        time.sleep(PATIENCE_SECONDS if batch.column(0)[0].as_py() else 0)
        yield batch


def test_a_stop_cancels_the_job_of_a_write_and_deletes_the_files_of_its_tasks(
    spark: SparkSession, tmp_path: Path
) -> None:
    catalog = paimon.connect(tmp_path / "lake")
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "id BIGINT")
    home, token, tracker = Path(table.location), paimon.CancelToken(), spark.sparkContext.statusTracker()
    before = set(home.rglob("*"))

    def has_finished_task() -> bool:
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
        return any(stage is not None and stage.numCompletedTasks for stage in stages)

    frame = spark.range(0, 4, 1, 2).mapInArrow(wait_in_last_partition, "id BIGINT")
    thread, started = cancel_once(has_finished_task, token), time.monotonic()
    with pytest.raises(paimon.Cancelled), token:
        paimon.spark.write(frame, table)
    thread.join()
    assert time.monotonic() - started < PATIENCE_SECONDS
    assert [path for path in set(home.rglob("*")) - before if path.is_file()] == []
    assert table.snapshots() == [] and spark.range(3).count() == 3  # the session is as before
    assert paimon.spark.write(spark.range(2), table).snapshot_ids == (1,)


def wait_in_the_first_job(begun: str, task: int) -> int:
    if task == TASKS - 1:
        Path(begun).touch()
        time.sleep(PATIENCE_SECONDS)
    return task


@pytest.mark.nightly
def test_a_stop_cancels_the_tasks_of_maintenance_and_discards_finished_results(
    spark: SparkSession, tmp_path: Path
) -> None:
    begun, token, discarded, taken = tmp_path / "begun", paimon.CancelToken(), list[int](), list[int]()
    thread, executor = cancel_once(begun.exists, token), spark_executor(spark, pickle.dumps, pickle.loads)
    with pytest.raises(paimon.Cancelled), token:
        taken.extend(executor.map(partial(wait_in_the_first_job, str(begun)), range(TASKS), discarded.append))
    thread.join()
    assert TASKS - 1 not in taken + discarded and len(set(taken + discarded)) == len(taken + discarded)
    with pytest.raises(paimon.DeadlineExceeded), paimon.deadline(0):
        paimon.spark.compact(_make_small_table(tmp_path), spark=spark)


@pytest.mark.parametrize(
    ("place", "name"),
    [(DataFrame, "collect"), pytest.param(SparkContext, "getLocalProperty", marks=pytest.mark.nightly)],
)
def test_a_session_that_stops_in_a_call_is_an_error_of_one_line(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, place: type, name: str
) -> None:
    table, context, found = _make_small_table(tmp_path), spark.sparkContext, getattr(place, name)
    merge = paimon.spark.merge(spark.range(1, 3), table, on="id").when_not_matched_insert_all()
    calls = (
        lambda: paimon.spark.write(spark.range(2), table),
        merge.execute,
        lambda: paimon.spark.delete(table, "id = 1", spark=spark),
        lambda: paimon.spark.compact(table, full=True, spark=spark, options=REWRITE_ALL),
    )
    before = set(Path(table.location).rglob("*"))

    def stop(*arguments: object) -> object:
        monkeypatch.setattr(context, "_jsc", None)  # what `SparkSession.stop` does first
        return found(*arguments)

    for call in calls:
        with monkeypatch.context() as patch:
            patch.setattr(place, name, stop)
            with pytest.raises(StorageError, match=r"^Spark: the session stopped, or .* run the call again\.$"):
                call()
            monkeypatch.undo()
    assert set(Path(table.location).rglob("*")) == before


def test_a_session_that_ends_in_a_commit_does_not_hide_it(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = _make_small_table(tmp_path)

    def end(*_: object) -> None:
        raise Py4JNetworkError("the Java process ended")

    callbacks = {"end": lambda done: monkeypatch.setattr(SparkContext, "setLocalProperty", end)}
    watched = table.with_engine(evolve(table.engine, callbacks=callbacks))
    done = paimon.spark.compact(watched, full=True, spark=spark, options=REWRITE_ALL)
    assert done.snapshot_ids == (2,)
    monkeypatch.undo()
    with pytest.raises(paimon.InvalidRequest, match=r"^The Spark session is stopped\."):
        monkeypatch.setattr(spark.sparkContext, "_jsc", None)
        paimon.spark.attach(spark, tmp_path / "lake", "ended")


def _make_small_table(home: Path) -> paimon.Table:
    catalog = paimon.connect(home / "lake")
    catalog.create_database("shop")
    table = catalog.create_table("shop.t", "id BIGINT")
    table.write([{"id": 1}])
    return table
