"""Derivatives of graphs: reverse mode, forward mode, and a check of both by finite differences."""
