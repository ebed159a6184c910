"""What every package stands on: checks, limits of iterations, memory, ranks, roots, kernels."""
