"""Test another implementation of the table format: it and this library read and write the same drawn tables.

An `Implementation` is an adapter with two methods and its declared `Capabilities`. The command `paimon-conformance`
prints a table of features: right, wrong with the smallest example, or refused.
"""

from paimon.testing.conformance.implementation import (
    BUCKET_MODES,
    FEATURES,
    FILE_FORMATS,
    KEY_TYPES,
    MERGE_ENGINES,
    Capabilities,
    Implementation,
    Refused,
    TableUnderTest,
)

__all__ = [
    "BUCKET_MODES",
    "FEATURES",
    "FILE_FORMATS",
    "KEY_TYPES",
    "MERGE_ENGINES",
    "Capabilities",
    "Implementation",
    "Refused",
    "TableUnderTest",
]
