"""Log events with the standard library: the only module that writes log lines.

Invariant: a line contains no secret, and no line break from a value. Nothing is printed unless the program configures
logging.
"""

from __future__ import annotations

import logging

from paimon.domain.secrets import redact_secrets
from paimon.ports.observer import Event

_ROOT = logging.getLogger("paimon")
_ROOT.addHandler(logging.NullHandler())
_WARNINGS = ("conflict", "request_retry", "slow_request")


class LoggingObserver:
    """Observer that logs events: one line each, by the logger ``paimon.<event>``."""

    def progress(self, activity: str, done: int, total: int | None = None) -> None:
        """Ignore the progress."""

    def count(self, metric: str, value: int) -> None:
        """Ignore the increment."""

    def event(self, event: Event) -> None:
        """Log the event."""
        log_event(event)


def log_event(event: Event) -> None:
    """Log an event as ``commit lake/shop.db/orders snapshot_id=3 …``; `extra` gives the event to handlers."""
    logger = _ROOT.getChild(event.name)
    level = logging.WARNING if event.name in _WARNINGS else logging.INFO
    if logger.isEnabledFor(level):
        values = [f"{name}={value}" for name, value in event.values.items()]
        line = " ".join(redact_secrets(" ".join([event.name, event.location, *values]), {}).split())
        logger.log(level, "%s", line, extra={"paimon_event": event})
