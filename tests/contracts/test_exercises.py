"""The helper that judges answers: three verdicts, and it never stops a notebook."""

import numpy as np
import pytest
import torch
from drot.exercises import Verdict, check


def small(answer):
    assert answer < 2, f"{answer} is not below 2"


def unwritten(x):
    raise NotImplementedError


@pytest.mark.parametrize(
    ("answer", "test"), [(None, pytest.fail), (..., pytest.fail), (unwritten, lambda f: f(1) == 1)]
)
def test_a_stub_is_not_an_attempt(answer, test):
    assert check(answer, test) == Verdict(None, "not attempted")


@pytest.mark.parametrize("right", [True, False])
def test_what_the_test_returns(right):
    said = Verdict(True, "right") if right else Verdict(False, "not yet: the test does not hold")
    for held in (right, np.bool_(right), torch.tensor(right), int(right), *[None] * right):
        assert check(0, lambda answer, held=held: held) == said  # 0 is still an answer


def test_why_not():
    """A notebook shows the sentence."""
    verdict = check(3, small)
    assert verdict == Verdict(False, "not yet: 3 is not below 2")
    assert repr(verdict) == str(verdict) == verdict.reason
    several = check(0, lambda answer: np.array([True, False]))
    assert several.right is False and several.reason.startswith("not yet: ValueError, ")
    wrong = check("three", small)
    assert wrong.right is False and wrong.reason.startswith("not yet: TypeError, ")
    assert check(exit, lambda answer: answer()).reason.startswith("not yet: SystemExit, ")


def test_what_is_no_answer():
    with pytest.raises(TypeError, match="function of the answer"):
        check(1, 2)

    def stop(answer):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(1, stop)
