"""Optimizers, clips and schedules. Adding an optimizer: one module and one export line here."""

from . import schedule as schedules
from .adafactor import Adafactor
from .adam import Adam, AdamW
from .base import Optimizer, ParamInfo
from .clip import Clip, clip_by_global_norm, clip_by_norm, clip_by_value
from .contract import Contract
from .groups import Group, ParamGroups
from .kron import KronPSGD
from .lamb import LAMB
from .lion import Lion
from .mars import MARS
from .muon import Muon
from .nadamw import NAdamW
from .qhadamw import QHAdamW
from .radam import RAdam
from .requirement import hessian_diag, previous_gradient
from .sgd import SGD
from .soap import SOAP
from .sophia import SophiaH
from .stiefel import Stiefel

__all__ = [
    "LAMB",
    "MARS",
    "SGD",
    "SOAP",
    "Adafactor",
    "Adam",
    "AdamW",
    "Clip",
    "Contract",
    "Group",
    "KronPSGD",
    "Lion",
    "Muon",
    "NAdamW",
    "Optimizer",
    "ParamGroups",
    "ParamInfo",
    "QHAdamW",
    "RAdam",
    "SophiaH",
    "Stiefel",
    "clip_by_global_norm",
    "clip_by_norm",
    "clip_by_value",
    "hessian_diag",
    "previous_gradient",
    "schedules",
]
