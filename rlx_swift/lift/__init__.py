"""Core ML packages read back into graphs: each operation of MIL becomes ops with MIL's meaning. Knows no session."""

from .program import Lifting as Lifting
from .program import lift as lift
