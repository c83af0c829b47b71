"""Training for Core ML from Python, also on systems without Core ML."""

from . import ops
from .autodiff.check import check_grads
from .autodiff.forward import hvp, jvp
from .autodiff.reverse import grad, grad_with_loss, vjp
from .dtypes import bool_, f16, f32, i32
from .interp import evaluate
from .ir.graph import Graph
