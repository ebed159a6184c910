"""Random graphs, their priors and their coupling (Part II)."""

from .graph import Components, Graph

__all__ = ["Components", "Graph"]
