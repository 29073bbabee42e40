"""The statements of Java's Spark documents, written anew, and how each is refused."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

STATEMENTS = Path(__file__).resolve().parents[1] / "data" / "java_spark_statements.sql"
REFUSED, CONNECT = "-- refused: ", "-- connect: "


def read_statements(through_connect: bool = False) -> Iterator[tuple[str, str | None]]:
    """Yield each statement, and how its error begins: in an attached catalog, or in `paimon.spark.connect(…).sql`."""
    refused: dict[str, str] = {}
    lines: list[str] = []
    for line in STATEMENTS.read_text("utf-8").splitlines():
        mark = next((mark for mark in (REFUSED, CONNECT) if line.startswith(mark)), None)
        if mark is not None:
            refused[mark] = line.removeprefix(mark)
        elif not line.startswith("--"):
            lines.append(line)
        if line.endswith(";") and not line.startswith("--"):
            text = "\n".join(lines).strip().removesuffix(";")
            yield text, refused.get(CONNECT if through_connect else REFUSED)
            refused, lines = {}, []
