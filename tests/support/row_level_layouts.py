"""The kinds of tables whose rows the Spark tests change."""

from __future__ import annotations

from typing import Any

SMALL_SPLITS = {"source.split.target-size": "1 b", "source.split.open-file-cost": "1 b"}
MARKED = {"deletion-vectors.enabled": "true"}
LAYOUTS: dict[str, dict[str, Any]] = {
    "append": {},
    "append partitioned": {"partition_keys": ["day"]},
    "append with vectors": {"options": MARKED},
    "append in buckets": {"options": {"bucket": "2", "bucket-key": "id"}},
    "append in buckets with vectors": {"options": {**MARKED, "bucket": "2", "bucket-key": "id"}},
    "fixed": {"primary_keys": ["id"], "options": {"bucket": "2"}},
    "fixed with vectors": {"primary_keys": ["id"], "options": {**MARKED, "bucket": "2"}},
    "partitioned": {"primary_keys": ["id", "day"], "partition_keys": ["day"], "options": {"bucket": "1"}},
    "dynamic": {"primary_keys": ["id"]},
    "cross partition": {"primary_keys": ["id"], "partition_keys": ["day"]},
    "partial update": {"primary_keys": ["id"], "options": {
        "bucket": "1", "merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"}},
}  # fmt: skip
