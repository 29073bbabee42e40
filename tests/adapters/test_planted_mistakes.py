"""Each contract finds the mistakes that are planted into adapters. Each mistake breaks a sentence of its port."""

from __future__ import annotations

import importlib

import pytest
from attrs import evolve
from hypothesis import Phase, settings
from support.case_lists import mark_nightly
from support.contract_mistakes import MISTAKES

from paimon.domain.merge.aggregate.aggregate_functions import AGGREGATE_FUNCTIONS
from paimon.domain.merge.merge_engines import MERGE_ENGINES, keep_first_rows
from paimon.domain.types.data_types import DateType
from paimon.testing import contracts

PORTS = {
    "paimon.ports.cache": [contracts.ObjectCacheContract],
    "paimon.ports.callbacks": [contracts.CommitCallbackContract, contracts.PartitionDoneCallbackContract],
    "paimon.ports.catalogs": [contracts.CatalogStoreContract],
    "paimon.ports.commit_groups": [contracts.CommitGroupsContract],
    "paimon.ports.effects": [
        contracts.ClockContract,
        contracts.IdsContract,
        contracts.RandomContract,
        contracts.ProcessEffectsContract,
    ],
    "paimon.ports.executor": [contracts.ExecutorContract],
    "paimon.ports.expressions": [contracts.ExpressionEvaluatorContract],
    "paimon.ports.files": [
        contracts.FileIOContract,
        contracts.DirectoriesContract,
        contracts.ManyFilesContract,
        contracts.DeferredFlushContract,
    ],
    "paimon.ports.formats": [
        contracts.FormatIOContract,
        contracts.RecordIOContract,
        contracts.FileSharingContract,
    ],
    "paimon.ports.key_stores": [contracts.KeyStoresContract],
    "paimon.ports.observer": [contracts.ObserverContract],
    "paimon.ports.queries": [contracts.QueryEngineContract],
    "paimon.ports.reports": [contracts.ReportSenderContract],
    "paimon.ports.row_files": [contracts.RowFilesContract],
    "paimon.ports.snapshots": [contracts.SnapshotCommitContract],
    "paimon.ports.temp": [contracts.TempStoreContract],
}
PORT_BY_CONTRACT = {contract: port for port, found in PORTS.items() for contract in found}
FIRST = {mistake.contract: name for name, mistake in reversed(MISTAKES.items())}
"""One mistake of each contract, which runs at every level."""


WRONG_RULES = {
    "oldest row wins": (
        contracts.MergeEngineContract,
        "deduplicate",
        {"columnar": keep_first_rows},
        "test_columnar_equals_reference",
    ),
    "oldest and newest row win": (
        contracts.MergeEngineContract,
        "first-row",
        {"newest_wins": True},
        "test_the_registry_describes_the_engine",
    ),
    "sum is the maximum": (
        contracts.AggregateContract,
        "sum",
        {"columnar": AGGREGATE_FUNCTIONS["max"].columnar},
        "test_columnar_equals_reference",
    ),
    "sums of dates": (contracts.AggregateContract, "sum", {"types": (DateType,)}, "test_columnar_equals_reference"),
}
"""A registered rule that is changed: its contract, its name, its wrong attributes, and the case that fails."""


@pytest.mark.parametrize("name", mark_nightly(WRONG_RULES, {"oldest row wins", "sum is the maximum"}))
def test_the_contract_finds_the_wrong_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    contract, rule, wrong, case = WRONG_RULES[name]
    registry = MERGE_ENGINES if contract is contracts.MergeEngineContract else AGGREGATE_FUNCTIONS
    monkeypatch.setitem(registry, rule, evolve(registry[rule], **wrong))  # type: ignore[index,type-var]
    derived = type("Planted", (contract,), {"engine_name": rule, "function_name": rule})
    check = getattr(contract, case)
    drawn = settings(
        check._hypothesis_internal_use_settings, phases=[Phase.generate], database=None
    )  # not the smallest
    monkeypatch.setattr(check, "_hypothesis_internal_use_settings", drawn)
    with pytest.raises(BaseException):  # noqa: B017
        getattr(derived(), case)()


@pytest.mark.parametrize("name", mark_nightly(MISTAKES, FIRST.values()))
def test_the_contract_finds_the_mistake(name: str) -> None:
    mistake = MISTAKES[name]
    [factory] = [member for member in dir(mistake.contract) if member.startswith("make_")]
    made = type(name, (mistake.contract,), {factory: lambda self, *given: mistake.make(*given)})
    with pytest.raises(BaseException) as found:
        getattr(made(), mistake.case)()
    assert not isinstance(found.value, NotImplementedError | KeyboardInterrupt)


def test_each_promise_is_a_sentence_of_the_port() -> None:
    missing = [name for name, mistake in MISTAKES.items() if mistake.promise not in read_port(mistake.contract)]
    assert not missing


def test_each_contract_of_a_port_has_mistakes() -> None:
    assert set(FIRST) == set(PORT_BY_CONTRACT)
    others = {contracts.MergeEngineContract, contracts.AggregateContract}
    assert {getattr(contracts, name) for name in contracts.__all__} == set(PORT_BY_CONTRACT) | others
    assert len(MISTAKES) >= 60


def read_port(contract: type) -> str:
    module = importlib.import_module(PORT_BY_CONTRACT[contract])
    assert module.__file__ is not None
    with open(module.__file__, encoding="utf-8") as file:
        return " ".join(file.read().split())
