"""The native library as Python objects: found, loaded, called; knows C and NumPy, and nothing of graphs.

Importing this loads nothing: the library comes with the first handle, or with `native()`.
"""

from .handles import NativeSession, Program, Store, check_device
from .loader import Native, NativeStatus, native, native_status
from .values import Feature

__all__ = [
    "Feature", "Native", "NativeSession", "NativeStatus", "Program", "Store", "check_device", "native", "native_status",
]
