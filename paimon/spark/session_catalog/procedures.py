"""Procedures of ``CALL lake.sys.…``: those of `paimon.spark.connect`, with its tasks and its results."""

from __future__ import annotations

from typing import Any

from pyspark.sql.types import BooleanType, DataType, LongType, StringType

from paimon.catalog import Catalog
from paimon.domain.types.type_text import quote_text
from paimon.spark.session_catalog.jvm import CONNECTOR, JavaProxy, Jvm, UnmeasuredProxy, refresh_cached_rows
from paimon.spark.sql.sql_catalog import connect
from paimon.verbs.verb import Parameter, Type
from paimon.verbs.verb_table import list_call_parameters

_PROCEDURES = f"{CONNECTOR}.catalog.procedures"


class ProcedureProxy(JavaProxy):
    """A procedure before and after Spark binds its arguments, whose types do not change it."""

    class Java:
        """The interfaces."""

        implements = (f"{_PROCEDURES}.UnboundProcedure", f"{_PROCEDURES}.BoundProcedure")

    def __init__(self, jvm: Jvm, catalog: Catalog, catalog_name: str, name: str) -> None:
        self.jvm = jvm
        self._catalog = catalog
        self._catalog_name = catalog_name
        self._name = name.lower()
        self._parameters: tuple[Parameter, ...] = ()

    def name(self) -> str:
        """Return the name."""
        return self._name

    def description(self) -> str:
        """Return what errors of Spark show."""
        return f"procedure sys.{self._name}"

    def bind(self, arguments: Any) -> Any:
        """Return the procedure; an unknown name is refused here, where Spark shows our error."""
        del arguments
        _, self._parameters = list_call_parameters(self._name)
        return self

    def isDeterministic(self) -> bool:
        """Return that a call changes the table."""
        return False

    def parameters(self) -> Any:
        """Return the parameters; those without a value are null."""
        kind = self.jvm.connector("catalog.procedures.ProcedureParameter")
        made = []
        for parameter in self._parameters:
            builder = getattr(kind, "in")(_spark_name(parameter), self.jvm.to_java_type(_spark_type(parameter)))
            builder = builder.comment(parameter.help)
            made.append((builder if parameter.required else builder.defaultValue("NULL")).build())
        return self.jvm.make_array(f"{_PROCEDURES}.ProcedureParameter", made)

    def call(self, row: Any) -> Any:
        """Run the procedure, and return its rows as one scan."""
        given = []
        for number, parameter in enumerate(self._parameters):
            if not row.isNullAt(number):
                given.append(f"{parameter.call_name} => {self._write_value(row, number, parameter)}")
        text = f"CALL sys.{self._name}({', '.join(given)})"
        frame = connect(self.jvm.spark, self._catalog).sql(text)
        for number, parameter in enumerate(self._parameters):
            if parameter.name == "table" and not row.isNullAt(number):
                refresh_cached_rows(self.jvm, f"{self._catalog_name}.{self._read_table(row, number)}")
        found = self.jvm.gateway.jvm.java.util.ArrayList()
        found.add(RowsProxy(self.jvm, frame._jdf))
        return found.iterator()

    def _write_value(self, row: Any, number: int, parameter: Parameter) -> str:
        match _spark_type(parameter):
            case BooleanType():
                return str(row.getBoolean(number)).upper()
            case LongType():
                return str(row.getLong(number))
        if parameter.name == "table":
            return quote_text(self._read_table(row, number))
        return quote_text(str(row.getUTF8String(number).toString()))

    def _read_table(self, row: Any, number: int) -> str:
        return str(row.getUTF8String(number).toString()).removeprefix(f"{self._catalog_name}.")


class RowsProxy(UnmeasuredProxy):
    """The rows of a result."""

    class Java:
        """The interfaces."""

        implements = (f"{CONNECTOR}.read.LocalScan",)

    def __init__(self, jvm: Jvm, frame: Any) -> None:
        self.jvm = jvm
        self._frame = frame

    def readSchema(self) -> Any:
        """Return the columns."""
        return self._frame.schema()

    def rows(self) -> Any:
        """Return the rows."""
        return self._frame.queryExecution().executedPlan().executeCollect()

    def description(self) -> str:
        """Return what plans show."""
        return "paimon result"


def _spark_name(parameter: Parameter) -> str:
    return parameter.spark or parameter.call_name


def _spark_type(parameter: Parameter) -> DataType:
    return {Type.INTEGER: LongType(), Type.BOOLEAN: BooleanType()}.get(parameter.type, StringType())
