"""Import this library before Arrow in workers that measure it, as a program does with `import paimon` on top.

The order decides the allocator of Arrow (docs/decisions/arrow-memory.md). Other workers import Arrow first.
"""

from __future__ import annotations

import sys
from importlib import import_module

if sys.argv[1:2] == ["ours"]:
    import_module("paimon")
