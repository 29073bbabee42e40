"""Every registered merge engine fulfils the contract of merge engines."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from hypothesis import strategies as st

from paimon.domain.merge.merge_engines import MERGE_ENGINES
from paimon.domain.options.known_options import OPTIONS
from paimon.testing.contracts import MergeEngineContract
from paimon.testing.contracts.merge_engines import Options

INTEGERS = ["sum", "product", "max", "min", "last_value", "last_non_null_value", "first_value", "first_non_null_value"]
TEXTS = ["listagg", "max", "min", "last_value", "first_non_null_value"]
ASSOCIATIVE = ["max", "min", "last_value", "last_non_null_value", "first_value", "first_non_null_value"]


def functions(numbers: list[str], texts: list[str]) -> st.SearchStrategy[Options]:
    """Draw a function for some of the columns."""
    chosen = {"a": numbers, "b": numbers, "d": numbers, "t": texts}
    drawn = st.fixed_dictionaries({}, optional={name: st.sampled_from(names) for name, names in chosen.items()})
    return drawn.map(lambda found: {f"fields.{name}.aggregate-function": value for name, value in found.items()})


@st.composite
def aggregations(draw: st.DrawFn) -> Options:
    removing = {"aggregation.remove-record-on-delete": "true"} if draw(st.booleans()) else {}
    forgiving = {f"fields.{name}.ignore-retract": "true" for name in draw(st.sets(st.sampled_from("abdt")))}
    return draw(functions(INTEGERS, TEXTS)) | (removing or forgiving)


@st.composite
def partial_updates(draw: st.DrawFn) -> Options:
    if draw(st.booleans()):
        return {"partial-update.remove-record-on-delete": draw(st.sampled_from(["true", "true", "false"]))}
    groups = {"fields.s.sequence-group": "a,t", "fields.g.sequence-group": "b,d"}
    removing = draw(st.sampled_from(["", "s", "g"]))
    more = {"partial-update.remove-record-on-sequence-group": removing} if removing else {}
    return groups | more | draw(functions(INTEGERS, TEXTS))


MORE_OPTIONS: Mapping[str, tuple[st.SearchStrategy[Options], st.SearchStrategy[Options]]] = {
    "aggregation": (aggregations(), functions(ASSOCIATIVE, ["listagg", *ASSOCIATIVE])),
    "partial-update": (partial_updates(), st.just({})),
}
"""Options of engines that have some: for comparing with the reference, and for merging parts."""


def derive_contract(name: str) -> type[MergeEngineContract]:
    options, associative = MORE_OPTIONS.get(name, (st.just({}), st.just({})))
    members = {"engine_name": name, "options": options, "associative_options": associative}
    return type(f"Test{name.title().replace('-', '')}", (MergeEngineContract,), members)


for engine_name in MERGE_ENGINES:
    contract = derive_contract(engine_name)
    globals()[contract.__name__] = contract
del contract


def test_the_option_accepts_exactly_the_registered_engines() -> None:
    assert set(OPTIONS["merge-engine"].choices) == set(MERGE_ENGINES)


@pytest.mark.parametrize("name", MORE_OPTIONS)
def test_options_belong_to_an_engine(name: str) -> None:
    assert name in MERGE_ENGINES
