"""The rounds of a stress test: what the processes of a round do, what was counted, and the sums of many rounds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen

PRIMARY_KEY_OPTIONS = {"bucket": "1", "merge-engine": "aggregation", "fields.times.aggregate-function": "sum"}
DYNAMIC_BUCKET_OPTIONS = {"bucket": "-1", "dynamic-bucket.target-row-num": "10"}
DELETION_VECTOR_OPTIONS = {"deletion-vectors.enabled": "true"}
REPAIRED_OPTIONS = {
    "write-only": "true", "num-sorted-run.compaction-trigger": "2", "snapshot.num-retained.min": "10",
    "snapshot.num-retained.max": "60", "manifest.merge-min-count": "5",
}  # fmt: skip
MANY_RETRIES = {"commit.max-retries": "1000"}
_COUNTERS = (
    "acknowledged", "lost", "duplicated", "phantom", "uncertain", "crashed_processes", "scans", "incomplete_scans",
)  # fmt: skip
_LISTS = ("refused", "failed", "faults")


@frozen
class StressTest:
    """What the processes do in one round.

    Parameters
    ----------
    writers : int
        The number of processes that write.
    commits : int
        The number of rows that each of them commits, one row per commit.
    has_primary_key : bool
        Whether the table has a primary key, or is an append table.
    uses_lock : bool
        Whether the processes use the commit lock. Without it, a lost race is retried up to 1000 times.
    readers : int
        The number of processes that scan the table until the writers end.
    has_deletion_vectors : bool
        Whether the table with a primary key has deletion vectors, so that reads skip level 0.
    has_dynamic_buckets : bool
        Whether the table with a primary key has dynamic buckets. Then each commit also adds one to a row that all
        writers share, and two more processes compact the table and expire its snapshots.
    is_repaired : bool
        Whether the writers leave all maintenance to one more process, which repairs the table with `Maintain.health`.
    """

    writers: int
    commits: int
    has_primary_key: bool
    uses_lock: bool = True
    readers: int = 0
    has_deletion_vectors: bool = False
    has_dynamic_buckets: bool = False
    is_repaired: bool = False

    def __str__(self) -> str:
        primary_key_kind = "deletion-vectors" if self.has_deletion_vectors else "primary-key"
        primary_key_kind = "dynamic-buckets" if self.has_dynamic_buckets else primary_key_kind
        kind = primary_key_kind if self.has_primary_key else "append"
        lock = "" if self.uses_lock else ", without lock"
        readers = f", {self.readers} reader{'s' if self.readers > 1 else ''}" if self.readers else ""
        repaired = ", repaired" if self.is_repaired else ""
        return f"{self.writers} writers x {self.commits} commits, {kind}{lock}{readers}{repaired}"

    @property
    def options(self) -> Mapping[str, str]:
        """The options of the table."""
        vectors = DELETION_VECTOR_OPTIONS if self.has_primary_key and self.has_deletion_vectors else {}
        keys = PRIMARY_KEY_OPTIONS if self.has_primary_key else {}
        buckets = DYNAMIC_BUCKET_OPTIONS if self.has_dynamic_buckets else {}
        repaired = REPAIRED_OPTIONS if self.is_repaired else {}
        return {**keys, **buckets, **vectors, **repaired, **({} if self.uses_lock else MANY_RETRIES)}


@frozen
class RoundResult:
    """The rows of one round, counted.

    Parameters
    ----------
    stress_test : str
        The description of the stress test.
    acknowledged : int
        Rows whose commit succeeded.
    lost : int
        Acknowledged rows that are not in the table.
    duplicated : int
        Rows that are in the table more than once.
    phantom : int
        Rows in the table that are neither acknowledged nor uncertain.
    uncertain : int
        Rows whose commit ended in doubt.
    crashed_processes : int
        Processes with an exit status other than 0.
    refused : tuple of str
        The error of each commit that was refused because of a conflict.
    faults : tuple of str
        What `check(deep=True)` reports.
    slowest_millis : int
        The duration of the slowest commit.
    seconds : float
        The duration of the round.
    failed : tuple of str
        The error of each commit whose storage failed.
    scans : int
        The scans of all readers.
    incomplete_scans : int
        Scans that lack a row which was acknowledged before they started.
    compactions : int
        Snapshots of compactions and merges of manifests, as far as they did not expire.
    """

    stress_test: str
    acknowledged: int
    lost: int
    duplicated: int
    phantom: int
    uncertain: int
    crashed_processes: int
    refused: tuple[str, ...]
    faults: tuple[str, ...]
    slowest_millis: int
    seconds: float
    failed: tuple[str, ...] = ()
    scans: int = 0
    incomplete_scans: int = 0
    compactions: int = 0

    @property
    def is_correct(self) -> bool:
        """Whether every acknowledged row is in the table once, and no commit, scan, process or check failed."""
        wrong = self.lost + self.duplicated + self.phantom + self.crashed_processes + self.incomplete_scans
        return not (wrong or self.refused or self.failed or self.faults)


def summarize(results: Sequence[RoundResult]) -> str:
    """Return one line with the sums of all rounds for each stress test."""
    lines = []
    for stress_test in dict.fromkeys(r.stress_test for r in results):
        rounds = [r for r in results if r.stress_test == stress_test]
        sums = {name: sum(getattr(r, name) for r in rounds) for name in _COUNTERS}
        sums |= {name: sum(len(getattr(r, name)) for r in rounds) for name in _LISTS}
        figures = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in sums.items())
        rate = sums["acknowledged"] / max(sum(r.seconds for r in rounds), 0.001)
        slowest = max(r.slowest_millis for r in rounds)
        lines.append(
            f"{stress_test}, {len(rounds)} rounds: {figures}; slowest commit {slowest} ms, {rate:.1f} commits/s"
        )
    return "\n".join(lines)
