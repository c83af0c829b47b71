"""Optimizers, clips and schedules. Adding an optimizer: one module and one export line here."""

from . import schedule as schedules
from .adam import Adam, AdamW
from .base import Optimizer
from .clip import Clip, clip_by_global_norm, clip_by_norm, clip_by_value
from .sgd import SGD

__all__ = [
    "SGD",
    "Adam",
    "AdamW",
    "Clip",
    "Optimizer",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "schedules",
]
