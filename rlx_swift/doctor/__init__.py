"""The self-test of Core ML on the system at hand. Knows cases only by name; each runs in a process of its own."""

from .report import Options, run

__all__ = ["Options", "run"]
