"""Which files any of several states of a table has, written to be read; see `columnar` for the fast twin.

Law: each state is counted by itself, each of its manifests once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence


def ever_live(
    states: Iterable[Iterable[str]], manifests: Mapping[str, Sequence[tuple[int, str]]]
) -> set[str]:
    """Names of the files that are live in at least one state.

    Parameters
    ----------
    states : iterable of iterables of str
        The manifests of each state.
    manifests : mapping
        By the name of a manifest: +1 and a file's name for each ADD, -1 for each DELETE.
    """
    found: set[str] = set()
    for state in states:
        count: Counter[str] = Counter()
        for manifest in set(state):
            for sign, name in manifests.get(manifest, ()):
                count[name] += sign
        found |= {name for name, n in count.items() if n > 0}
    return found
