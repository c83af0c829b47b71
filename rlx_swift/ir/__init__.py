"""Graphs: types, leaves, nodes, printing, serialising, copying. Imports errors and dtypes only."""
