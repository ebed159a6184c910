"""A grid that was stopped or torn leaves the file of a grid that was not."""

from itertools import product
from pathlib import Path

import pytest

CASES = [dict(zip(("data", "xi", "seed"), x, strict=True)) for x in product("ab", (5, 30), (0, 1))]
FIELDS = ["value", "note"]


def work(data: str, xi: int, seed: int) -> dict:
    return {"value": xi / 7 + seed, "note": f"{data}, {seed}"}


def expected(fact: str = "") -> str:
    rows = (f'{a},{b},{c},{b / 7 + c},"{a}, {c}"' for a, b, c in (case.values() for case in CASES))
    return fact + "\n".join(["data,xi,seed,value,note", *rows]) + "\n"


@pytest.fixture
def path(tmp_path) -> Path:
    return tmp_path / "grid.csv"


@pytest.fixture
def run(script, path):
    """The grid here."""
    sweep = script("sweep").run
    return lambda work=work, **options: sweep(CASES, work, path, fields=FIELDS, **options)


def test_a_stopped_run_goes_on_where_it_was(run, path):
    """The same bytes as an uninterrupted run, no finished case twice; two at once are refused."""

    def stopped(**case) -> dict:
        if path.read_bytes().count(b"\n") == 2 + 3:  # each row is on the disk when it has ended
            with pytest.raises(BlockingIOError):
                run()
            raise KeyboardInterrupt
        return work(**case)

    with pytest.raises(KeyboardInterrupt):
        run(work=stopped, facts="# a fact\n")
    assert run(n_jobs=2) == (len(CASES) - 3, 3, 0)
    assert path.read_text("utf8") == expected("# a fact\n")


@pytest.mark.parametrize("cut", [1, 45])
def test_a_torn_last_line_is_dropped(run, path, cut):
    """A line without its end was cut short, however whole it looks; so was a short head."""
    run(facts="# a fact\n")
    whole = path.read_bytes()
    path.write_bytes(whole[:-cut])
    lost = whole[-cut:].count(b"\n")
    assert run() == (lost, len(CASES) - lost, 0)
    assert path.read_bytes() == whole
    path.write_bytes(whole[:20])  # the comment, and a part of the columns
    run(facts="# a fact\n")
    assert path.read_bytes() == whole


def test_a_case_that_raises_is_said_and_tried_again(run, path, capsys):
    def broken(data: str, xi: int, seed: int) -> dict:
        if xi == 30 and seed == 1:
            raise ArithmeticError("no step")
        return work(data, xi, seed)

    assert run(work=broken) == (6, 0, 2)
    assert "a 30 1 ArithmeticError: no step" in capsys.readouterr().out
    assert run(work=lambda **case: {"value": 1.0}) == (0, 6, 2)
    assert run() == (2, 6, 0)
    assert path.read_text("utf8") == expected()
