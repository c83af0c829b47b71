"""The functional form of every op, under NumPy's names where those exist.

One family a module, one record an op (`rlx_swift.ir.op.Op`). A function that is public carries `@public`;
adding a module means adding it to the imports below.
"""

from ..ir.tensor import FUNCTIONS as _FUNCTIONS
from . import (  # noqa: F401  (importing a family declares its ops)
    arithmetic,
    compare,
    conv,
    elementwise,
    index,
    linalg,
    loss,
    normalize,
    pool,
    power,
    primitives,
    reduce,
    select,
    shape,
    slicing,
)

globals().update(_FUNCTIONS)
__all__ = sorted(_FUNCTIONS)
