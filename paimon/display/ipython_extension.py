"""The IPython extension of the library: after `%load_ext paimon`, notebooks show pyarrow tables as cards.

Verbs and reads return tables of pyarrow, which have no HTML form of their own. The caller loads the extension, and
`import paimon` does not, because it changes how a notebook shows all pyarrow tables, also those of other libraries.

Invariant: IPython is not imported. It passes its shell.
"""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from paimon.display.cards import report_arrow_table
from paimon.domain.report import format_report_card

_HTML = "text/html"


def load_ipython_extension(shell: Any) -> None:
    """Show pyarrow tables as cards; IPython calls this for `%load_ext paimon`."""
    shell.display_formatter.formatters[_HTML].for_type(pa.Table, _format_arrow_table)


def unload_ipython_extension(shell: Any) -> None:
    """Show pyarrow tables as text again; IPython calls this for `%unload_ext paimon`."""
    shell.display_formatter.formatters[_HTML].pop(pa.Table, None)


def _format_arrow_table(rows: pa.Table) -> str:
    return format_report_card(report_arrow_table(rows))
