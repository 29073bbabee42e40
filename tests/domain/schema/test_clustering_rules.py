"""Which declarations of clustered primary-key tables are not consistent: Java refuses the same."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from paimon.domain.errors import InvalidRequest
from paimon.domain.schema.declare import declare_schema
from paimon.domain.types.ddl import parse_columns

CLUSTERED = {"bucket": "1", "pk-clustering-override": "true", "clustering.columns": "a"}
VECTORS = {"deletion-vectors.enabled": "true"}


def declare_clustered(options: Mapping[str, str]) -> None:
    declare_schema(parse_columns("k INT NOT NULL, a INT, c DOUBLE"), ["k"], [], CLUSTERED | options, None, 0)


def test_clustering_by_another_column_with_deletion_vectors_is_consistent() -> None:
    declare_clustered(VECTORS)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "deletion"),
        (VECTORS | {"merge-engine": "aggregation"}, "merge-engine"),
        (VECTORS | {"sequence.field": "c"}, "sequence.field"),
        (VECTORS | {"changelog-producer": "lookup"}, "changelog-producer"),
    ],
)
def test_clustering_with_other_features_is_refused(options: Mapping[str, str], words: str) -> None:
    with pytest.raises(InvalidRequest) as refused:
        declare_clustered(options)
    assert words in str(refused.value)
