"""Every family of rules, imported so that each fills the table."""

from . import activation as activation
from . import compressed as compressed
from . import convolution as convolution
from . import elementwise as elementwise
from . import images as images
from . import indexing as indexing
from . import layout as layout
from . import linear as linear
from . import normalization as normalization
from . import pooling as pooling
from . import reduction as reduction
from . import slicing as slicing
