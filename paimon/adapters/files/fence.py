"""Where local paths really lead: symbolic links do not lead out of the roots that a table may use.

Law: a path below a root is used only if, with all links followed, it lies below one of the roots (links followed too).
Links within the roots, and a root that is a link itself, are as good as directories. Source: our own rule.
"""

from __future__ import annotations

import os

from attrs import frozen

from paimon.domain.errors import CorruptTable

_HINT = "open the table by its real path, or pass allowed_roots=[…] if that place is to be trusted"


@frozen
class Fence:
    """Absolute local directories; without any, every path is let through.

    Paths that lie below no root even by name were judged by whoever took the name.
    """

    roots: tuple[str, ...] = ()

    def inside(self, name: str, path: str) -> str:
        """The name of a local file itself; CorruptTable for `path` where links lead it out of the roots."""
        if self.leaves(name):
            raise CorruptTable(path, f"leads to {os.path.realpath(name)!r} by a symbolic link", hint=_HINT)
        return name

    def place(self, name: str, path: str) -> str:
        """Like `inside` for what is made, replaced or removed: a link that has the name is not followed."""
        self.inside(os.path.dirname(name), path)
        return name

    def leaves(self, name: str) -> bool:
        """Whether links lead a path out of the roots."""
        root = next((root for root in self.roots if _is_below(name, root)), None)
        if root is None or not _links_below(root, name):
            return False
        real = os.path.realpath(name)
        return not any(_is_below(real, os.path.realpath(root)) for root in self.roots)


def _links_below(root: str, name: str) -> bool:
    """Whether a link is on the way from a root to a path below it: without one, nothing leads out.

    Every file that is opened asks, so it looks at no more than it must.
    """
    if "/../" in f"{name}/" or "/./" in name:
        return True  # where the way goes on depends on links: the system tells
    place = root.rstrip("/")
    for part in name[len(place) :].split("/"):
        if part:
            place = f"{place}/{part}"
            if os.path.islink(place):
                return True
    return False


def _is_below(name: str, root: str) -> bool:
    return name == root or name.startswith(root.rstrip("/") + "/")
