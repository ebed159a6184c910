"""Options that several functions share: typed once, and shown in each signature."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from typing import Any, TypeVar, get_type_hints

from .threads import by_size

Method = TypeVar("Method", bound=Callable[..., Any])


def takes_options_of(source: Callable[..., Any], options: type) -> Callable[[Method], Method]:
    """Show ``options`` of ``source``, with their defaults, in the signature of a method with
    ``**options``, and run it on the threads that its data pay for.

    What the method has by name itself keeps its own default.
    """

    def show(method: Method) -> Method:
        shown, types = signature(method), get_type_hints(options)
        own = {name: p for name, p in shown.parameters.items() if name != "options"}
        shared = [p for p in signature(source).parameters.values() if p.name in types]
        named = [own.pop(p.name, p.replace(kind=Parameter.KEYWORD_ONLY)) for p in shared]
        del method.__annotations__["options"]
        method.__annotations__ |= types
        parameters = [*own.values(), *named]
        method.__signature__ = shown.replace(parameters=parameters)  # type: ignore[attr-defined]
        return by_size(method)  # type: ignore[return-value]  # of the same signature

    return show
