"""Where we meet coremltools, which only this folder imports, and only when asked to."""
