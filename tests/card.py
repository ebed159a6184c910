"""A make-believe GPU: a device of its own whose tensors lie in this machine's memory.

A tensor of the device ``card`` wraps one of the CPU; each operation first asks whether its
arguments lie on one device, as CUDA does, and then runs on the wrapped tensors. What would make a
GPU wait is counted. Roundings, races and speed show on a real GPU only.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.utils._mode_utils import no_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend

__all__ = ["NAME", "Traffic", "make_believe"]

NAME = "card"
# When it first runs, autograd counts the devices: this one is there before any test.
if not hasattr(torch, NAME):  # once, though pytest may read this file twice
    _setup_privateuseone_for_python_backend(NAME)
_aten = torch.ops.aten
_COPIES = {_aten._to_copy.default, _aten.copy_.default}  # from one device to another
_POSITIONS = {_aten.index.Tensor, _aten.index_put.default, _aten.index_put_.default}
_POSITIONS |= {_aten._index_put_impl_.default}  # positions may lie on the CPU


@dataclass
class Traffic:
    """What crossed between the devices."""

    reads: int = 0  # of one number, which wait for all kernels before
    moved: int = 0  # bytes, in either direction

    def count(self, function, tensors: list[Tensor], found) -> None:
        self.reads += function is _aten._local_scalar_dense.default
        if function in _COPIES:
            ends = {isinstance(x, _Card) for x in (*tensors, found)}
            self.moved += (len(ends) > 1) * found.numel() * found.element_size()


_TRAFFIC = Traffic()


class _Card(Tensor):
    """A tensor that says ``card:0``; ``inner`` has its numbers."""

    inner: Tensor

    @staticmethod
    def __new__(cls, inner: Tensor) -> "_Card":
        where = {"strides": inner.stride(), "storage_offset": inner.storage_offset()}
        where |= {"dtype": inner.dtype, "device": torch.device(NAME, 0)}
        outer = Tensor._make_wrapper_subclass(cls, inner.size(), **where)
        outer.inner = inner
        return outer

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        return _run(function, args, kwargs or {})

    def tolist(self) -> list:
        return self.inner.tolist()

    def __repr__(self, *, tensor_contents=None) -> str:
        return f"{self.inner!r} on {self.device}"


def _tensors(values) -> Iterator[Tensor]:
    """Those among the arguments, and in lists of them."""
    for value in values:
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, list | tuple):
            yield from _tensors(value)


def _inner(value):
    if isinstance(value, _Card):
        return value.inner
    return type(value)(map(_inner, value)) if type(value) in (list, tuple) else value


def _one_device(function, args: tuple, tensors: list[Tensor], out: Tensor | None) -> bool:
    """Whether the arguments lie on the card; an error where CUDA would raise one."""
    plain = [x for x in tensors if not isinstance(x, _Card)]
    if len(plain) == len(tensors):
        return False
    if function in _COPIES:
        return isinstance(args[0], _Card)
    if function in _POSITIONS and isinstance(args[0], _Card):
        plain = [x for x in plain if any(x is y for y in args[2:])]
    if not plain:
        return True
    # elementwise, one number of the CPU may meet a tensor of the card, and the card has the result
    meets = torch.Tag.pointwise in function.tags or function in _POSITIONS
    written = args[0] if function._schema.name.endswith("_") else out
    if not meets or any(x.ndim > 0 or x is written for x in plain):
        raise RuntimeError(
            f"{function}: expected all tensors to be on the same device, but found at least two "
            f"devices, {NAME}:0 and cpu"
        )
    return True


def _run(function, args: tuple, kwargs: dict):
    tensors = [*_tensors(args), *_tensors(kwargs.values())]
    there = _one_device(function, args, tensors, kwargs.get("out"))
    if kwargs.get("device") is not None:
        there = torch.device(kwargs["device"]).type == NAME
        kwargs = {**kwargs, "device": torch.device("cpu")}
    if there and torch.Tag.inplace_view in function.tags:  # another shape in place: both take it
        with no_dispatch():
            function(*args, **kwargs)
    outer = {id(x.inner): x for x in tensors if isinstance(x, _Card)}
    found = function(*map(_inner, args), **{key: _inner(x) for key, x in kwargs.items()})

    def wrap(x):  # in place, the same tensor comes back
        if isinstance(x, Tensor):
            return outer[id(x)] if id(x) in outer else _Card(x)
        return type(x)(map(wrap, x)) if type(x) in (list, tuple) else x

    found = wrap(found) if there else found
    if there or outer:
        _TRAFFIC.count(function, tensors, found)
    return found


class _Maker(TorchDispatchMode):
    """Makes on the card what is asked for there."""

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        return _run(function, args, kwargs or {})


@contextmanager
def make_believe() -> Iterator[Traffic]:
    """The device is there, and its traffic counted."""
    lifted = torch._C._only_lift_cpu_tensors()
    torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor(..., device=) through the mode
    try:
        with _Maker():
            _TRAFFIC.reads = _TRAFFIC.moved = 0
            yield _TRAFFIC
    finally:
        torch._C._set_only_lift_cpu_tensors(lifted)
