"""Objects of Spark's Java process: arrays, maps and exceptions, the base of proxies, and classes that must be Java.

Invariant: an error of a proxy reaches Spark as a Java exception, whose text begins with the name of our error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import wraps
from importlib.resources import files
from itertools import count
from threading import Lock
from typing import Any
from weakref import WeakKeyDictionary, WeakValueDictionary

from attrs import field, frozen
from py4j.java_gateway import JavaObject
from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import AnalysisException, CapturedException
from pyspark.java_gateway import ensure_callback_server_started
from pyspark.sql import SparkSession
from pyspark.sql.types import DataType, _parse_datatype_json_string

from paimon.domain.errors import PaimonError, Unsupported
from paimon.engines import translate_spark_error

_PACKAGE = "org.apache.spark.sql"
CONNECTOR, INTERNAL = f"{_PACKAGE}.connector", f"{_PACKAGE}.internal"
_MOST_KEPT = 500
"""Objects of `Jvm.remember`."""


@frozen(eq=False)
class Jvm:
    """The Java process of a classic session. It remembers classes, because Java is asked for each part of a name."""

    spark: SparkSession
    _found: dict[object, Any] = field(init=False, factory=dict)
    _kept: dict[object, Any] = field(init=False, factory=dict)

    @property
    def gateway(self) -> Any:
        """The connection to the Java process."""
        return self.spark.sparkContext._gateway

    def find_class(self, name: str) -> Any:
        """Return a Java class by its full name."""
        if name not in self._found:
            found = self.gateway.jvm
            for part in name.split("."):
                found = getattr(found, part)
            self._found[name] = found
        return self._found[name]

    def connector(self, name: str) -> Any:
        """Return a class of the package of Spark's interfaces for sources."""
        return self.find_class(f"{CONNECTOR}.{name}")

    def make_array(self, kind: str, items: Sequence[Any] = ()) -> Any:
        """Return a Java array of a class; `items` are its elements."""
        if not items:
            return self.remember(("empty", kind), lambda: self.gateway.new_array(self.find_class(kind), 0))
        made = self.gateway.new_array(self.find_class(kind), len(items))
        for number, item in enumerate(items):
            made[number] = item
        return made

    def make_proxy_array(self, kind: str, items: Iterable[JavaProxy]) -> Any:
        """Return an array of an interface; elements of an array cannot be set to proxies one by one."""
        given = self.find_class("java.util.ArrayList")()
        for item in items:
            given.add(item)
        made = given.toArray()
        return self.find_class("java.util.Arrays").copyOf(made, len(made), self.make_array(kind).getClass())

    def make_texts(self, items: Sequence[str]) -> Any:
        """Return an array of strings."""
        return self.make_array("java.lang.String", items)

    def make_set(self, items: Iterable[Any]) -> Any:
        """Return a Java set."""
        made = self.find_class("java.util.HashSet")()
        for item in items:
            made.add(item)
        return made

    def make_map(self, items: Mapping[str, str]) -> Any:
        """Return a Java map that cannot be changed."""

        def make() -> Any:
            made = self.find_class("java.util.HashMap")()
            for key, value in items.items():
                made.put(key, value)
            return self.find_class("java.util.Collections").unmodifiableMap(made)

        return self.remember(("map", tuple(items.items())), make)

    def read_json(self, value: Any) -> Any:
        """Return predicates, columns, names or a map of Java as values of Python, which come in one message."""
        return json.loads(self.remember("json", lambda: self.create("JsonText")).apply(value))

    def make_long(self, value: int | None) -> Any:
        """Return an `OptionalLong`."""
        kind = self.find_class("java.util.OptionalLong")
        return kind.empty() if value is None else kind.of(value)

    def list_enum(self, kind: str, names: Sequence[str]) -> Any:
        """Return a set of the constants of an enum that this version of Spark has."""
        key = kind, tuple(names)
        if key not in self._found:
            known = {str(constant): constant for constant in self.connector(kind).values()}
            self._found[key] = self.make_set(known[name] for name in names if name in known)
        return self._found[key]

    def is_a(self, value: Any, kind: str) -> bool:
        """Return whether a value is of a Java class."""
        return bool(self.find_class("py4j.reflection.TypeUtil").isInstanceOf(kind, value))

    def to_java_type(self, schema: DataType) -> Any:
        """Convert a type of PySpark."""
        text = schema.json()
        return self.remember(("type", text), lambda: self.spark._jsparkSession.parseDataType(text))

    def remember(self, key: object, make: Callable[[], Any]) -> Any:
        """Return an object of Java that never changes; it is made again if many others were used since."""
        found = self._kept.get(key)
        if found is None:
            if len(self._kept) >= _MOST_KEPT:
                self._kept.clear()
            found = self._kept[key] = make()
        return found

    def compile_class(self, name: str) -> Any:
        """Return the constructor of a class that must be Java; the compiler that Spark contains compiles it once.

        Py4J remembers the methods of a class by its name, also for later sessions of the process.
        """
        with _COMPILING:  # two threads must not compile it under one name
            made = _CLASSES.setdefault(self.gateway, {})
            if name not in made:
                compiler = self.find_class("org.codehaus.janino.SimpleCompiler")()
                thread = self.gateway.jvm.java.lang.Thread.currentThread()
                compiler.setParentClassLoader(thread.getContextClassLoader())
                compiler.cook(files(__package__).joinpath(f"{name}.java").read_text("utf-8"))
                made[name] = compiler.getClassLoader().loadClass(f"paimon.spark.{name}").getConstructors()[0]
            return made[name]

    def create(self, name: str, *arguments: Any) -> Any:
        """Create an object of a class that must be Java."""
        given = self.find_class("java.util.ArrayList")()  # an array takes no proxies
        for argument in arguments:
            given.add(argument)
        return self.compile_class(name).newInstance(given.toArray())

    def start_callbacks(self) -> None:
        """Let Java call Python, and let the Java exceptions of Python functions reach Java as they are."""
        ensure_callback_server_started(self.gateway)
        for name in ("python_parameters", "callback_server_parameters"):
            parameters = getattr(self.gateway, name, None)  # the gateway has only one of them without pinned threads
            if parameters is not None:
                parameters.propagate_java_exceptions = True


_COMPILING = Lock()
_CLASSES: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()
"""The constructors of classes of this package in Java, by the connection to the Java process."""


def to_python_type(kind: Any) -> Any:
    """Convert a type of Spark's Java process to PySpark."""
    return _parse_datatype_json_string(kind.json())


def get_or_none(option: Any) -> Any:
    """Return the value of an option of Scala; None if it has none."""
    return option.get() if option.isDefined() else None


def refresh_cached_rows(jvm: Jvm, title: str) -> None:
    """Let Spark read the rows of a table that it cached again, where they are next used; `title` has three parts."""
    session = jvm.spark._jsparkSession
    if session.sharedState().cacheManager().isEmpty():
        return
    with suppress(AnalysisException):  # dropped since
        session.catalog().refreshTable(".".join(f"`{part.replace('`', '``')}`" for part in title.split(".", 2)))


class JavaProxy:
    """Base of Python objects that Spark calls; a subclass names its interfaces in a class `Java`.

    Py4J calls no default methods of interfaces, so a subclass has them, too. Each public method translates errors.
    """

    jvm: Jvm
    _number: int | None = None

    def __init_subclass__(cls) -> None:
        for name, found in list(vars(cls).items()):
            if callable(found) and not name.startswith("_") and not isinstance(found, type):
                setattr(cls, name, _translate_errors(found))

    def equals(self, other: Any) -> bool:
        """Return whether another object is this one."""
        return self is find_proxy(other)

    def hashCode(self) -> int:
        """Return a number that no other proxy has, by which `find_proxy` finds this one."""
        if self._number is None:
            self._number = next(_NUMBERS)
            _PROXIES[self._number] = self
        return self._number

    def toString(self) -> str:
        """Return what plans show."""
        return repr(self)


_NUMBERS = count(1)
_PROXIES: WeakValueDictionary[int, JavaProxy] = WeakValueDictionary()
"""The proxies that Java asked for their hash, by this number."""


def find_proxy(found: Any) -> JavaProxy | None:
    """Return the Python object of an object that Java returned; None if it is none of ours."""
    if found is None or isinstance(found, JavaProxy):
        return found
    known = _PROXIES.get(found.hashCode()) if isinstance(found, JavaObject) else None
    if known is None or not found.getClass().getName().rpartition(".")[2].startswith("$Proxy"):
        return None
    return known


def _translate_errors(method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    def call(proxy: JavaProxy, *arguments: Any) -> Any:
        try:
            return method(proxy, *arguments)
        except PaimonError as error:
            raise to_java_error(proxy.jvm, error) from error
        except AnalysisException as error:  # checked, and the methods of Java declare other ones
            raise to_java_error(proxy.jvm, translate_spark_error(error)) from error
        except CapturedException as error:
            origin = getattr(error, "_origin", None)
            if origin is None:
                raise
            raise Py4JJavaError(str(error), origin) from error

    return call


class UnmeasuredProxy(JavaProxy):
    """Base of proxies that Spark asks for metrics, of which there are none."""

    def supportedCustomMetrics(self) -> Any:
        """Return no metrics of our own."""
        return self.jvm.make_array(f"{CONNECTOR}.metric.CustomMetric")

    def reportDriverMetrics(self) -> Any:
        """Return no metrics of our own."""
        return self.jvm.make_array(f"{CONNECTOR}.metric.CustomTaskMetric")


def to_java_error(jvm: Jvm, error: PaimonError) -> Py4JJavaError:
    """Return an exception of Java with the name and the text of an error of this library."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, Unsupported):
        return Py4JJavaError(text, jvm.find_class("java.lang.UnsupportedOperationException")(text))
    return Py4JJavaError(text, jvm.create("RefusedStatement", text))


def make_name_error(jvm: Jvm, kind: str, subject: Any) -> Py4JJavaError:
    """Return one of Spark's exceptions about names, such as ``NoSuchTableException``."""
    made = jvm.find_class(f"{_PACKAGE}.catalyst.analysis.{kind}")(subject)
    return Py4JJavaError(kind, made)
