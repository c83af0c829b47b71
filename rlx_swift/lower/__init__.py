"""From graphs to Core ML packages: programs as plain data, and their bytes. Knows nothing of coremltools."""
