"""Find the files that are live in any of several states of a table: the reference for `referenced_files_columnar`.

Invariant: Each state is counted separately, and each of its manifests once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence


def ever_live(states: Iterable[Iterable[str]], manifests: Mapping[str, Sequence[tuple[int, str]]]) -> set[str]:
    """Return the files that are live in a state (a set of manifests) of (1, ADD) and (-1, DELETE) entries."""
    found: set[str] = set()
    for state in states:
        count: Counter[str] = Counter()
        for manifest in set(state):
            for sign, name in manifests.get(manifest, ()):
                count[name] += sign
        found |= {name for name, n in count.items() if n > 0}
    return found
