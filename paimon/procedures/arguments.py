"""Parameters of procedures, and the check of arguments.

Invariant: an argument that a procedure does not have, and a value of another type, are refused before anything runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from attrs import frozen

from paimon.domain.errors import InvalidRequest, did_you_mean
from paimon.domain.options.parse import parse_duration_millis

TEXT, INTEGER, BOOLEAN, TIME = "text", "integer", "boolean", "time"
"""Types of parameters. A time is a timestamp as text, or an age such as ``'7 d'``."""


@frozen
class Parameter:
    """A parameter of a procedure."""

    name: str
    # text, integer, boolean or time
    type: str
    # what the parameter means
    help: str
    # whether it has no default
    required: bool = False
    # name in Spark, where it is not that in Flink
    other_name: str | None = None

    def convert(self, procedure: str, value: object) -> Any:
        """Return the value of an argument as a str, int or bool, by the type of the parameter."""
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        if (
            self.type == INTEGER
            and isinstance(value, str)
            and value.strip().lstrip("-").isdecimal()
            and len(value) <= 20
        ):
            return int(value)
        if self.type == BOOLEAN and isinstance(value, str) and value.lower() in ("true", "false"):
            return value.lower() == "true"
        fits = {
            TEXT: isinstance(value, str) or is_integer,
            INTEGER: is_integer,
            BOOLEAN: isinstance(value, bool),
            TIME: isinstance(value, str) or is_integer,
        }[self.type]
        if not fits:
            message = (
                f"Argument {self.name!r} of procedure {procedure!r} is {value!r}, which is not of type {self.type}."
            )
            raise InvalidRequest(message, subject=self.name, hint=self.help)
        return str(value) if self.type == TEXT else value


def bind_arguments(
    procedure: str, parameters: Sequence[Parameter], positional: Sequence[object], named: Mapping[str, object]
) -> dict[str, Any]:
    """Return the given arguments by the names of their parameters, without those that have their default.

    NULL in `named` is the default.
    """
    by_name = {parameter.name: parameter for parameter in parameters}
    if len(positional) > len(parameters):
        message = f"Procedure {procedure!r} has {len(parameters)} parameters, and the call has {len(positional)}."
        raise InvalidRequest(message, subject=procedure, hint=f"the parameters are {', '.join(by_name)}")
    given = {parameter.name: value for parameter, value in zip(parameters, positional, strict=False)}
    other_names = {parameter.other_name: parameter.name for parameter in parameters}
    for given_name, value in named.items():
        name = other_names.get(given_name, given_name)
        if name not in by_name:
            hint = did_you_mean(name, by_name)
            raise InvalidRequest(f"Procedure {procedure!r} has no parameter {name!r}.", subject=name, hint=hint)
        if name in given:
            raise InvalidRequest(f"Argument {name!r} of procedure {procedure!r} is given twice.", subject=name)
        given[name] = value
    missing = [p for p in parameters if p.required and given.get(p.name) is None]
    if missing:
        message = f"Procedure {procedure!r} needs the argument {missing[0].name!r}."
        raise InvalidRequest(message, subject=missing[0].name, hint=missing[0].help)
    return {name: by_name[name].convert(procedure, value) for name, value in given.items() if value is not None}


def to_moment(value: str | int | None) -> object:
    """Return an age such as ``'7 d'`` as a timedelta; any other time stays as it is."""
    if not isinstance(value, str):
        return value
    try:
        return timedelta(milliseconds=parse_duration_millis(value, "time"))
    except InvalidRequest:
        return value
