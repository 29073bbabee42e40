"""An adapter behind another one that runs something around each call, such as a check or a translation of errors."""

from __future__ import annotations

from abc import abstractmethod
from contextlib import AbstractContextManager
from functools import wraps
from typing import Any

from attrs import frozen


@frozen(eq=False, slots=False)
class CallProxy:
    """An adapter whose methods run in the context that `_surround` of a subclass returns."""

    inner: object

    @abstractmethod
    def _surround(self, name: str) -> AbstractContextManager[object]:
        """Return the context of one call of the method `name`."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "inner":  # a copy asks for them before it has an adapter
            raise AttributeError(name)
        found = getattr(self.inner, name)
        if not callable(found):
            return found

        @wraps(found)
        def call(*given: Any, **named: Any) -> Any:
            with self._surround(name):
                return found(*given, **named)

        return call
