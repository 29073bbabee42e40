"""Bind the arguments of CALL to the parameters of a verb.

Invariant: an argument that a verb does not have, and a value of another type, are refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.options.parse import parse_duration_millis
from paimon.domain.predicate.build import col
from paimon.domain.predicate.expression import Or, Predicate
from paimon.verbs.verb import Parameter, Type, Verb

Partitions = Sequence[Mapping[str, str]]
"""Values of partition columns; each selects the partitions with these values."""
Time = str | int | None
"""A timestamp or an age as text, or epoch milliseconds."""


def bind_arguments(
    procedure: str, parameters: Sequence[Parameter], positional: Sequence[object], named: Mapping[str, object]
) -> dict[str, object]:
    """Return the given arguments by name, without defaults; NULL in `named` is the default."""
    by_name = {parameter.call_name: parameter for parameter in parameters}
    if len(positional) > len(parameters):
        message = f"Procedure {procedure!r} has {len(parameters)} parameters, and the call has {len(positional)}."
        raise InvalidRequest(message, subject=procedure, hint=f"the parameters are {', '.join(by_name)}")
    given = dict(zip(by_name, positional, strict=False))
    spark_names = {parameter.spark: parameter.call_name for parameter in parameters}
    for given_name, value in named.items():
        name = spark_names.get(given_name, given_name)
        if name not in by_name:
            hint = did_you_mean(name, by_name)
            raise InvalidRequest(f"Procedure {procedure!r} has no parameter {name!r}.", subject=name, hint=hint)
        if name in given:
            raise InvalidRequest(f"Argument {name!r} of procedure {procedure!r} is given twice.", subject=name)
        given[name] = value
    missing = [name for name, parameter in by_name.items() if parameter.required and given.get(name) is None]
    if missing:
        message = f"Procedure {procedure!r} needs the argument {missing[0]!r}."
        raise InvalidRequest(message, subject=missing[0], hint=by_name[missing[0]].help)
    return {
        by_name[name].name: _convert(procedure, by_name[name], value)
        for name, value in given.items()
        if value is not None
    }


def complete_arguments(verb: Verb[object], given: Mapping[str, object]) -> list[object]:
    """Return the arguments of the function of a verb in their order: given ones, and defaults."""
    return [given.get(parameter.name, parameter.default) for parameter in verb.parameters]


def _convert(procedure: str, parameter: Parameter, value: object) -> object:
    kind = parameter.type
    is_integer = isinstance(value, int) and not isinstance(value, bool)
    if kind is Type.INTEGER and isinstance(value, str) and value.strip().lstrip("-").isdecimal() and len(value) <= 20:
        return int(value)
    if kind is Type.BOOLEAN and isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    fits = {Type.INTEGER: is_integer, Type.BOOLEAN: isinstance(value, bool)}
    if not fits.get(kind, isinstance(value, str) or is_integer):
        name = parameter.call_name
        message = f"Argument {name!r} of procedure {procedure!r} is {value!r}, which is not of type {kind.label}."
        raise InvalidRequest(message, subject=name, hint=parameter.help)
    match kind:
        case Type.TEXT:
            return str(value)
        case Type.NAMES:
            return tuple(name.strip() for name in str(value).split(","))
        case Type.PARTITIONS:
            return parse_partitions(str(value))
        case _:
            return value


PARTITIONS_HELP = "partitions such as 'dt=2026-01-01,hour=1;dt=2026-01-02'"


def to_moment(value: Time) -> object:
    """Return an age such as ``'7 d'`` as a timedelta; any other time stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return timedelta(milliseconds=parse_duration_millis(value, "time"))
    except InvalidRequest:
        return value


def parse_assignments(text: str, what: str) -> dict[str, str]:
    """Parse ``k=v,k2=v2``; values may be in single quotes. Errors name the text as `what`."""
    found: dict[str, str] = {}
    for part in (piece.strip() for piece in text.split(",")):
        if not part:
            continue
        key, equals, value = part.partition("=")
        if not equals:
            raise InvalidRequest(f"Argument {what!r} has the part {part!r}.", subject=part, hint="write key=value")
        found[key.strip()] = value.strip().strip("'")
    return found


def parse_partitions(text: str) -> Partitions:
    """Parse partitions such as ``dt=2026-01-01,hour=1;dt=2026-01-02``."""
    found = [spec for part in text.split(";") if (spec := parse_assignments(part, "partitions"))]
    if not found:
        raise InvalidRequest("No partition is given.", subject="partitions", hint="write 'dt=2026-01-01;dt=2026-01-02'")
    return found


def to_predicate(partitions: Partitions) -> Predicate:
    """Return the condition that selects partitions."""
    parts: list[Predicate] = []
    for spec in partitions:
        first, *others = [col(key) == value for key, value in spec.items()]
        for other in others:
            first = first & other
        parts.append(first)
    return parts[0] if len(parts) == 1 else Or(tuple(parts))


def choose_condition(partitions: str | None, where: str | None) -> str | Predicate | None:
    """Return the condition that is given, as partitions or as SQL."""
    if partitions is not None and where is not None:
        raise InvalidRequest("Both 'partitions' and 'where' are given.", subject="where", hint="give one of them")
    return where if partitions is None else to_predicate(parse_partitions(partitions))
