"""Running graphs: devices, compiled graphs, and the training session."""
