"""Self-checks of the book's exercises: not attempted, right, or why not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Verdict", "check"]


def __dir__() -> list[str]:
    return __all__


@dataclass(frozen=True)
class Verdict:
    """What :func:`check` found; a notebook shows it as its sentence.

    Attributes
    ----------
    right : bool or None
        None where there is no answer yet.
    reason : str
        The sentence.
    """

    right: bool | None
    reason: str

    def __repr__(self) -> str:
        return self.reason


def check(answer: object, test: Callable[[object], object]) -> Verdict:
    """Judge an answer to an exercise, without ever stopping the notebook.

    Parameters
    ----------
    answer : object
        None means that the exercise was not attempted. A function to be written may instead
        raise ``NotImplementedError`` when it is called.
    test : callable
        Called with the answer. It says why the answer is wrong by a failing ``assert`` with a
        sentence, or returns False; anything else means that the answer is right.

    Returns
    -------
    Verdict
        "not attempted", "right", or "not yet: " and the reason.

    Examples
    --------
    >>> def even(number):
    ...     assert number % 2 == 0, f"{number} is odd"
    >>> check(None, even)
    not attempted
    >>> check(3, even)
    not yet: 3 is odd
    >>> check(4, even)
    right
    """
    if not callable(test):
        raise TypeError("test must be a function of the answer")
    if answer is None or answer is Ellipsis:
        return Verdict(None, "not attempted")
    try:
        held = test(answer)
        # a test may return a bool of Python, NumPy or torch, or nothing
        right = held is None or bool(held)
    except NotImplementedError:
        return Verdict(None, "not attempted")
    except AssertionError as error:
        sentence = str(error).partition("\n")[0]
        return Verdict(False, f"not yet: {sentence or 'the test does not hold'}")
    except (Exception, SystemExit) as error:
        return Verdict(False, f"not yet: {type(error).__name__}, {error}")
    return Verdict(True, "right") if right else Verdict(False, "not yet: the test does not hold")
