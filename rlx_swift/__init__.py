"""Training for Core ML from Python, also on systems without Core ML."""

from . import ops
from .interp import evaluate
from .ir.graph import Graph
