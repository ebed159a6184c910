"""What every test may rely on: no seed, default or number of threads leaks into another."""

import importlib
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import hypothesis
import numpy as np
import pytest
import torch
from card import NAME, make_believe

# A shell that runs the tests in its background has SIGINT ignored, and so would the processes that
# tests of interrupts start.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The same examples in every run: a red test stays red until it is mended.
hypothesis.settings.register_profile("drot", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("drot")


def pytest_terminal_summary(terminalreporter) -> None:
    """One line for each reason to skip, however many tests share it."""
    reports = terminalreporter.stats.get("skipped", [])
    reasons = Counter(r.longrepr[2] for r in reports if isinstance(r.longrepr, tuple))
    for reason, count in reasons.most_common():
        terminalreporter.write_line(f"{count} skipped: {reason.removeprefix('Skipped: ')}")


@pytest.fixture
def gpu() -> Iterator[str]:
    """A device other than the CPU: CUDA where there is one, a make-believe one elsewhere."""
    if torch.cuda.is_available():
        yield "cuda"
        return
    with make_believe():
        yield NAME


@pytest.fixture(scope="module")
def script() -> Iterator[Callable]:
    """Imports a script of the benchmarks by its name; they import their neighbours."""
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(Path(__file__).resolve().parents[1] / "benchmarks")
        yield importlib.import_module


@pytest.fixture(autouse=True)
def same_seeds() -> Iterator[None]:
    dtype, state = torch.get_default_dtype(), np.random.get_state()  # noqa: NPY002
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002  of estimators that are given none
        yield
    np.random.set_state(state)  # noqa: NPY002
    torch.set_num_threads(threads)
    assert torch.get_default_dtype() == dtype, "the test changed torch's default dtype"
