"""Wrong key stores, query engines, evaluators, merge engines and aggregate functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from attrs import evolve

from paimon.adapters.commit_groups import ThreadCommitGroups
from paimon.adapters.expressions.duckdb_evaluator import DuckdbEvaluator
from paimon.adapters.queries.duckdb_queries import DuckDBQueries
from paimon.domain.errors import PaimonError, StorageError
from paimon.domain.predicate.expression import ScalarSql
from paimon.ports.queries import QuerySource
from paimon.testing import contracts
from paimon.testing.memory_key_store import MemoryKeyStore, MemoryKeyStores
from support.contract_mistakes.planting import plant

KEYS = contracts.KeyStoresContract
_MEMORY = 256 << 20


def plant_store(case: str, promise: str) -> Any:
    """Register key stores of this class."""

    def register(store: type[MemoryKeyStore]) -> Any:
        members = {"open": lambda self, keys, memory_bytes, millis: store(keys, millis)}
        return plant(KEYS, case, promise)(type(store.__name__, (MemoryKeyStores,), members))

    return register


@plant_store("test_a_put_replaces_places", "Set the places of keys, whether the store has them or not.")
class FirstPlaces(MemoryKeyStore):
    def put(self, keys: Any, places: Any, now_millis: int) -> None:
        known = dict(self._entries)
        super().put(keys, places, now_millis)
        self._entries |= known


@plant_store("test_keys_are_equal_as_primary_keys_are", "null equals null, NaN equals NaN, and -0.0 does not equal 0.0")
class OneZero(MemoryKeyStore):
    def _encode(self, keys: pa.RecordBatch) -> list[bytes]:
        columns = [pc.add(column, 0.0) if pa.types.is_floating(column.type) else column for column in keys.columns]
        return super()._encode(pa.RecordBatch.from_arrays(columns, schema=keys.schema))


@plant_store(
    "test_keys_expire_after_their_last_put", "Keys whose time to live is over by more than one eighth are dropped."
)
class EternalKeys(MemoryKeyStore):
    def __init__(self, keys: Sequence[Any], time_to_live_millis: int | None) -> None:
        super().__init__(keys, None)


@plant_store("test_keys_expire_after_their_last_put", "The time to live of the keys begins anew.")
class KeysOfTheirFirstPut(MemoryKeyStore):
    def put(self, keys: Any, places: Any, now_millis: int) -> None:
        begins = {key: entry[1] for key, entry in self._entries.items()}
        super().put(keys, places, now_millis)
        self._entries = {key: (place, begins.get(key, at)) for key, (place, at) in self._entries.items()}
        super().put(keys.slice(0, 0), places[:0], now_millis)


@plant_store("test_loaded_keys_are_found", "The number of keys that were added.")
class LoadOfTheLastBatch(MemoryKeyStore):
    def load(self, batches: Iterable[Any], now_millis: int) -> int:
        return super().load(list(batches)[-1:], now_millis)


@plant_store("test_a_new_store_has_no_key", "-1 where the store does not have the key")
class ZeroForUnknown(MemoryKeyStore):
    def find(self, keys: pa.RecordBatch) -> Any:
        return np.maximum(super().find(keys), 0)


_SHARED: dict[bytes, tuple[int, int]] = {}


@plant_store("test_stores_are_independent", "A new store, independent of others.")
class OneStore(MemoryKeyStore):
    def __init__(self, keys: Sequence[Any], time_to_live_millis: int | None) -> None:
        super().__init__(keys, time_to_live_millis)
        self._entries = _SHARED


QUERIES = contracts.QueryEngineContract


class _Duckdb(DuckDBQueries):
    def __init__(self) -> None:
        super().__init__(_MEMORY, 1)


@plant(QUERIES, "test_a_query_neither_reads_nor_writes_files", "It neither opens files by name nor changes anything.")
class QueriesOfFiles(_Duckdb):
    def run(self, sql: str, sources: Mapping[str, QuerySource]) -> Any:
        return (
            super().run(sql, sources) if sources else pa.table({"rows": [str(duckdb.sql(sql).fetchall())]}).to_reader()
        )


@plant(QUERIES, "test_a_query_reads_its_sources", "in an order that only ORDER BY defines")
class UnorderedQueries(_Duckdb):
    def run(self, sql: str, sources: Mapping[str, QuerySource]) -> Any:
        return super().run(sql.partition(" ORDER BY")[0], sources)


@plant(QUERIES, "test_times_are_those_of_the_zone", "the dates and times of day of instants")
class QueriesInUtc(_Duckdb):
    time_zone = "Asia/Tokyo"


_LAST: dict[str, QuerySource] = {}


@plant(QUERIES, "test_calls_are_independent", "Calls are independent of each other, and may overlap.")
class QueriesOfLastSources(_Duckdb):
    def run(self, sql: str, sources: Mapping[str, QuerySource]) -> Any:
        _LAST.clear()
        _LAST.update(sources)
        schema = self.describe(sql, sources)

        def read() -> Iterator[pa.RecordBatch]:
            yield from super(QueriesOfLastSources, self).run(sql, _LAST)

        return pa.RecordBatchReader.from_batches(schema, read())


@plant(QUERIES, "test_the_error_of_a_source_is_unchanged", "What a source raises, unchanged.")
class ErrorsOfSources(_Duckdb):
    def run(self, sql: str, sources: Mapping[str, QuerySource]) -> Any:
        schema = self.describe(sql, sources)

        def read() -> Iterator[pa.RecordBatch]:
            try:
                yield from super(ErrorsOfSources, self).run(sql, sources)
            except PaimonError as error:
                raise StorageError("query", str(error)) from error

        return pa.RecordBatchReader.from_batches(schema, read())


@plant(QUERIES, "test_columns_are_known_without_reading", "Return the columns of a query; no row is read.")
class DescribeByRunning(_Duckdb):
    def describe(self, sql: str, sources: Mapping[str, QuerySource]) -> pa.Schema:
        return self.run(sql, sources).read_all().schema


@plant(QUERIES, "test_only_views_of_the_engine_are_found", "None if the engine has no session, or no such view in it.")
class ViewsOfAnyName(_Duckdb):
    def find_view(self, name: Sequence[str]) -> QuerySource | None:
        rows = pa.table({"id": []})
        return QuerySource(rows.schema, rows.to_reader)


EXPRESSIONS = contracts.ExpressionEvaluatorContract


@plant(EXPRESSIONS, "test_values_have_the_order_of_the_rows", "the values have the order of the rows")
class SortedValues(DuckdbEvaluator):
    def evaluate(self, expression: ScalarSql, rows: pa.RecordBatch) -> pa.Array:
        found = super().evaluate(expression, rows)
        return found.take(pc.sort_indices(found))


@plant(EXPRESSIONS, "test_the_type_is_known_without_rows", "Its type depends on the schema of the rows only.")
class TypeOfTheRows(DuckdbEvaluator):
    def evaluate(self, expression: ScalarSql, rows: pa.RecordBatch) -> pa.Array:
        found = super().evaluate(expression, rows)
        return found if len(found) else pa.nulls(0)


@plant(EXPRESSIONS, "test_an_expression_without_columns_has_a_value", "One value for each row.")
class OneValue(DuckdbEvaluator):
    def evaluate(self, expression: ScalarSql, rows: pa.RecordBatch) -> pa.Array:
        found = super().evaluate(expression, rows)
        return found if expression.columns else found[:1]


@plant(EXPRESSIONS, "test_times_are_those_of_the_zone", "Dates and times of day are those of `expression.time_zone`")
class TimesInUtc(DuckdbEvaluator):
    def evaluate(self, expression: ScalarSql, rows: pa.RecordBatch) -> pa.Array:
        return super().evaluate(evolve(expression, time_zone="UTC"), rows)


@plant(EXPRESSIONS, "test_a_wrong_expression_is_refused", "A function does not exist, types do not fit")
class WrongIsNull(DuckdbEvaluator):
    def find_type(self, expression: ScalarSql, schema: pa.Schema) -> pa.DataType:
        try:
            return super().find_type(expression, schema)
        except PaimonError:
            return pa.null()


@plant(EXPRESSIONS, "test_files_of_the_machine_are_out_of_reach", "As `find_type`; or a value cannot be computed")
class RawErrorsOfSql(DuckdbEvaluator):
    def evaluate(self, expression: ScalarSql, rows: pa.RecordBatch) -> pa.Array:
        return pa.array(duckdb.sql(f"SELECT {expression.sql}").fetchall() * rows.num_rows)


GROUPS = contracts.CommitGroupsContract


@plant(GROUPS, "test_a_call_that_is_not_taken_leads_later", "one leads at a time")
class UnqueuedGroups(ThreadCommitGroups):
    def run(self, key: str, member: Any, lead: Any) -> None:
        super().run(f"{key} {member}", member, lead)


@plant(GROUPS, "test_an_error_of_the_leader_is_its_own", "What `lead` raises, in the call that leads only.")
class SilentLeaders(ThreadCommitGroups):
    def run(self, key: str, member: Any, lead: Any) -> None:
        with suppress(LookupError):
            super().run(key, member, lead)


@plant(GROUPS, "test_a_stopped_call_is_never_taken", "Stopped, in a call that waits: its member is never taken.")
class UnstoppedGroups(ThreadCommitGroups):
    def _leave(self, queue: Any, call: Any) -> bool:
        is_waiting = super()._leave(queue, call)
        if is_waiting:
            queue.waiting.append(evolve(call))
        return is_waiting
