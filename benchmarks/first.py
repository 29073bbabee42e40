"""Imported before everything else: where this library is measured, it is loaded before Arrow, as `import paimon` above
`import pyarrow` does (docs/decisions/arrow-memory.md); the other sides load Arrow as it comes."""

from __future__ import annotations

import sys
from importlib import import_module

if sys.argv[1:2] == ["ours"]:
    import_module("paimon")
