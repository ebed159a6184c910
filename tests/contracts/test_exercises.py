"""The helper that judges answers: three verdicts, and it never stops a notebook."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from drot.exercises import Verdict, check


def small(answer):
    assert answer < 2, f"{answer} is not below 2"


def unwritten(x):
    raise NotImplementedError


@pytest.mark.parametrize("stub", [None, ...])
def test_a_stub_is_not_an_attempt(stub):
    """The test is not even called: it could not be with a stub."""

    def never(answer):
        raise RuntimeError("called")

    assert check(stub, never) == Verdict(None, "not attempted")


def test_an_unwritten_function_is_not_an_attempt():
    assert check(unwritten, lambda f: f(1) == 1).right is None


@pytest.mark.parametrize("held", [None, True, np.True_, torch.tensor(True), 1, np.array([2.0])])
def test_right(held):
    assert check(1, lambda answer: held) == Verdict(True, "right")
    assert check(1, small).right is True
    assert check(0, small).right is True  # an answer that is falsy is still an answer


@pytest.mark.parametrize("held", [False, np.False_, torch.tensor(False), 0])
def test_a_test_that_returns_false(held):
    assert check(1, lambda answer: held) == Verdict(False, "not yet: the test does not hold")


def test_why_not():
    assert check(3, small) == Verdict(False, "not yet: 3 is not below 2")

    def mute(answer):
        raise AssertionError

    assert check(3, mute) == Verdict(False, "not yet: the test does not hold")


def test_an_answer_of_the_wrong_kind_is_told_so():
    verdict = check("three", small)
    assert verdict.right is False
    assert verdict.reason.startswith("not yet: TypeError, ")


def test_a_notebook_shows_the_sentence():
    assert repr(check(3, small)) == str(check(3, small)) == "not yet: 3 is not below 2"


def test_a_test_must_be_callable():
    with pytest.raises(TypeError, match="function of the answer"):
        check(1, 2)


def test_interruption_is_not_an_answer():
    def stop(answer):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        check(1, stop)
