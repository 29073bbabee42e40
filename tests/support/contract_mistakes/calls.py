"""Wrong senders of reports, callbacks, and settings of the process."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import Any
from urllib import request

from paimon.adapters.http_reports import HttpReports
from paimon.domain.errors import InvalidRequest, StorageError
from paimon.ports.callbacks import CommitEvent, PartitionDoneEvent
from paimon.testing import contracts
from support.contract_mistakes.planting import plant

REPORTS = contracts.ReportSenderContract


class UrllibSender:
    """A sender that is right but for what a mistake changes."""

    def post(self, url: str, body: bytes) -> bytes:
        return HttpReports().post(url, body)


@plant(REPORTS, "test_a_document_arrives", "Send one JSON document by POST, and return the response.")
class SenderOfText(UrllibSender):
    def post(self, url: str, body: bytes) -> bytes:
        return super().post(url, body.decode("ascii", "replace").encode())


@plant(REPORTS, "test_a_document_arrives", "The body of the response, unchanged")
class SenderThatStrips(UrllibSender):
    def post(self, url: str, body: bytes) -> bytes:
        return super().post(url.partition("?")[0], body)


@plant(REPORTS, "test_a_long_response", "at most 64 KiB")
class SenderOfLongResponses(UrllibSender):
    def post(self, url: str, body: bytes) -> bytes:
        try:
            return super().post(url, body)
        except StorageError as error:
            if "more than" not in str(error):
                raise
            return b""


@plant(REPORTS, "test_an_error_of_the_server", "The call is not idempotent, and is not repeated.")
class SenderThatRepeats(UrllibSender):
    def post(self, url: str, body: bytes) -> bytes:
        try:
            return super().post(url, body)
        except StorageError:
            return super().post(url, body)


@plant(REPORTS, "test_no_redirect", "No redirect is followed")
class SenderThatFollows(UrllibSender):
    def post(self, url: str, body: bytes) -> bytes:
        with request.urlopen(request.Request(url, body)) as response:
            return bytes(response.read())


@plant(REPORTS, "test_a_server_that_does_not_respond", "The server does not respond, or responds with an error")
class SenderOfRawErrors(UrllibSender):
    def post(self, url: str, body: bytes) -> bytes:
        try:
            return super().post(url, body)
        except StorageError as error:
            assert error.__cause__ is not None
            raise error.__cause__ from None


@plant(REPORTS, "test_other_urls", "The URL has another scheme, or is not valid.")
class SenderOfFiles(UrllibSender):
    def post(self, url: str, body: bytes) -> bytes:
        if url.startswith("file:"):
            return b"SUCCESS"
        return super().post(url, body)


@plant(REPORTS, "test_no_error_shows", "no error shows a password of the URL")
class SenderThatQuotes(UrllibSender):
    def post(self, url: str, body: bytes) -> bytes:
        try:
            return super().post(url, body)
        except InvalidRequest as error:
            raise StorageError(url, "not accepted") from error


@plant(REPORTS, "test_threads_may_send", "It is safe to use from several threads.")
class SenderOfOneThread(UrllibSender):
    body = b""

    def post(self, url: str, body: bytes) -> bytes:
        self.body = body
        url = url.strip()
        return super().post(url, self.body)


COMMITS = contracts.CommitCallbackContract
MARKS = contracts.PartitionDoneCallbackContract


class Recorder:
    """A callback that keeps what it was told, with a function that describes it."""

    def __init__(self) -> None:
        self.known: dict[Any, Any] = {}

    def __iter__(self) -> Iterator[Any]:
        """Be the pair that `make_callback` returns."""
        return iter((self, lambda: dict(self.known)))

    def __call__(self, event: Any, /) -> None:
        raise NotImplementedError


@plant(COMMITS, "test_each_commit", "A function that is called once for each published commit.")
class CallbackOfPartitions(Recorder):
    def __call__(self, event: CommitEvent, /) -> None:
        self.known[event.table.table_name] = event.partitions[0]["day"]


@plant(COMMITS, "test_a_commit_whose_files", "None if an earlier attempt published it and it has expired.")
class CallbackOfSnapshots(Recorder):
    def __call__(self, event: CommitEvent, /) -> None:
        assert event.snapshot is not None
        self.known[event.table.table_name, event.snapshot.id] = True


@plant(COMMITS, "test_a_repeated_call", "called at least once, also after later commits, and must be idempotent")
class CallbackThatCounts(Recorder):
    def __call__(self, event: CommitEvent, /) -> None:
        self.known[event.table.table_name] = self.known.get(event.table.table_name, 0) + 1


@plant(COMMITS, "test_a_repeated_call", "also after later commits")
class CallbackOfTheLast(Recorder):
    def __call__(self, event: CommitEvent, /) -> None:
        self.known[event.table.table_name] = event.snapshot and event.snapshot.id


@plant(MARKS, "test_a_partition_may_be", "A partition that is marked again is handled again")
class MarkOnce(Recorder):
    def __call__(self, event: PartitionDoneEvent, /) -> None:
        assert event.directory not in self.known
        self.known[event.directory] = True


@plant(MARKS, "test_a_partition_may_be", "so the callback must be idempotent")
class MarkThatAppends(Recorder):
    def __call__(self, event: PartitionDoneEvent, /) -> None:
        self.known[len(self.known)] = event.directory


@plant(MARKS, "test_events_of_commits", "with a `CommitEvent`")
class MarkOfAnyEvent(Recorder):
    def __call__(self, event: Any, /) -> None:
        self.known[getattr(event, "directory", "")] = True


EFFECTS = contracts.ProcessEffectsContract


class QuietEffects:
    def pause_gc(self) -> AbstractContextManager[None]:
        return nullcontext()

    def release_thread_memory(self) -> None:
        pass


@plant(EFFECTS, "test_the_collector_is_left", "if it ran before the first one began")
class PauseThatEnables(QuietEffects):
    @contextmanager
    def pause_gc(self) -> Iterator[None]:
        gc.disable()
        try:
            yield
        finally:
            gc.enable()


@plant(EFFECTS, "test_the_collector_is_left", "does not suppress errors of the block")
class PauseThatSuppresses(QuietEffects):
    @contextmanager
    def pause_gc(self) -> Iterator[None]:
        with suppress(KeyError):
            yield


@plant(EFFECTS, "test_blocks_of_threads", "may run in several threads at the same time")
class PauseOfOneThread(QuietEffects):
    @contextmanager
    def pause_gc(self) -> Iterator[None]:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_enabled:
                gc.enable()


@plant(EFFECTS, "test_memory_is_returned", "It is an optimization that never raises")
class ReleaseOfOneThread(QuietEffects):
    def release_thread_memory(self) -> None:
        raise OSError("no such function: mi_collect")
