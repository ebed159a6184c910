"""What every package stands on, and no reader calls.

To find a sentence that refuses bad input, open ``checks``; what a seed may be, ``chance``; the loop
of all solvers, its trace and how it fails, ``run``; results on disk, ``saving``; whether an array
is kept and how large a tile is, ``memory``; how many threads a call takes, ``threads``; processes
that share rows, ``ranks``; how methods take the options of another function, ``options``;
exponentials, factors and eigenvectors that several chapters need, ``algebra``.
"""
