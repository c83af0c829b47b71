"""Rewrites of graphs, one a module."""
