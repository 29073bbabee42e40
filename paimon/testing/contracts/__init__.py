"""Contract suites for ports, merge engines and aggregate functions: derive a test class, and let pytest collect it."""

import paimon.testing.strategies  # noqa: F401  (names the extra if Hypothesis is not installed)
from paimon.testing.contracts.aggregates import AggregateContract
from paimon.testing.contracts.caches import ObjectCacheContract
from paimon.testing.contracts.callbacks import CommitCallbackContract, PartitionDoneCallbackContract
from paimon.testing.contracts.catalogs import CatalogStoreContract
from paimon.testing.contracts.commit_groups import CommitGroupsContract
from paimon.testing.contracts.directories import DeferredFlushContract, DirectoriesContract, ManyFilesContract
from paimon.testing.contracts.effects import (
    ClockContract,
    IdsContract,
    ObserverContract,
    ProcessEffectsContract,
    RandomContract,
)
from paimon.testing.contracts.executors import ExecutorContract
from paimon.testing.contracts.expressions import ExpressionEvaluatorContract
from paimon.testing.contracts.file_sharing import FileSharingContract
from paimon.testing.contracts.files import FileIOContract
from paimon.testing.contracts.formats import FormatIOContract
from paimon.testing.contracts.key_stores import KeyStoresContract
from paimon.testing.contracts.merge_engines import MergeEngineContract
from paimon.testing.contracts.queries import QueryEngineContract
from paimon.testing.contracts.records import RecordIOContract
from paimon.testing.contracts.reports import ReportSenderContract
from paimon.testing.contracts.row_files import RowFilesContract
from paimon.testing.contracts.snapshots import SnapshotCommitContract
from paimon.testing.contracts.temp import TempStoreContract

__all__ = [
    "AggregateContract",
    "CatalogStoreContract",
    "ClockContract",
    "CommitCallbackContract",
    "CommitGroupsContract",
    "DeferredFlushContract",
    "DirectoriesContract",
    "ExecutorContract",
    "ExpressionEvaluatorContract",
    "FileIOContract",
    "FileSharingContract",
    "FormatIOContract",
    "IdsContract",
    "KeyStoresContract",
    "ManyFilesContract",
    "MergeEngineContract",
    "ObjectCacheContract",
    "ObserverContract",
    "PartitionDoneCallbackContract",
    "ProcessEffectsContract",
    "QueryEngineContract",
    "RandomContract",
    "RecordIOContract",
    "ReportSenderContract",
    "RowFilesContract",
    "SnapshotCommitContract",
    "TempStoreContract",
]
