"""What every package stands on, and no reader calls.

Checks of the input (``checks``); seeds (``chance``); the loop of all solvers and how it ends
(``run``); results on disk (``saving``); memory and the size of a tile (``memory``), threads
(``threads``), processes (``ranks``); options that functions share (``options``); mathematics that
several chapters share (``algebra``).
"""
