"""Options that several functions share, typed once."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, TypeVar, get_type_hints

from .threads import pairs_of, threads_for

Method = TypeVar("Method", bound=Callable[..., Any])


def takes_options_of(source: Callable[..., Any], options: type) -> Callable[[Method], Method]:
    """Give a method with ``**options`` those of ``source``, with their defaults, and show them in
    its signature; run it on the threads that its data pay for.

    What the method has by name itself keeps its own default.
    """

    def show(method: Method) -> Method:
        shown, types = signature(method), get_type_hints(options)
        own = {name: p for name, p in shown.parameters.items() if name != "options"}
        shared = [p for p in signature(source).parameters.values() if p.name in {*types, *own}]
        defaults = {p.name: p.default for p in shared if p.name not in own}
        named = [own.pop(p.name, p.replace(kind=Parameter.KEYWORD_ONLY)) for p in shared]
        del method.__annotations__["options"]
        method.__annotations__ |= types
        parameters = sorted([*own.values(), *named], key=lambda p: p.kind)
        method.__signature__ = full = shown.replace(parameters=parameters)  # type: ignore[attr-defined]

        @wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                data, *_ = full.bind(*args, **kwargs).arguments.values()
            except TypeError as error:
                raise TypeError(f"{method.__name__}() {error}") from None
            with threads_for(pairs_of(data)):
                return method(*args, **defaults | kwargs)

        return call  # type: ignore[return-value]

    return show
