"""Rewrites from graph to graph, one a module; each keeps the values of the outputs unless it says otherwise."""
