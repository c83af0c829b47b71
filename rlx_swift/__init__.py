"""Training for Core ML from Python, also on systems without Core ML."""

from . import nn, ops, optim
from .autodiff.check import check_grads
from .autodiff.custom import custom_vjp
from .autodiff.forward import hvp, jvp
from .autodiff.remat import remat
from .autodiff.reverse import grad, grad_with_loss, vjp
from .autodiff.vmap import vmap
from .dtypes import bool_, f16, f32, i32
from .dtypes import bool_ as bool
from .errors import RlxError
from .interop.validate import validate
from .interp import evaluate
from .ir.graph import Graph
from .ir.op import OpKind
from .ir.symbolic import SymbolicGraph, param_spec, spec, trace
from .ir.tensor import Tensor
from .lift import lift
from .lora import lora, lora_params, merge_lora
from .optim import (
    LAMB,
    MARS,
    SGD,
    SOAP,
    Adafactor,
    Adam,
    AdamW,
    Group,
    KronPSGD,
    Lion,
    Muon,
    NAdamW,
    Optimizer,
    ParamGroups,
    QHAdamW,
    RAdam,
    SophiaH,
    Stiefel,
    hessian_diag,
    previous_gradient,
)
from .passes.inference import inference
from .passes.loss import with_loss as with_loss
from .passes.simplify import simplify
from .precision import PrecisionPolicy, precision_report
from .session.compiled import CompiledGraph, Session
from .session.config import TrainConfig
from .session.data import Batches, batches
from .session.device import DeviceStatus, devices
from .session.difference import diff_models
from .session.fit import Callback, History
from .session.model import Model, load_model
from .session.report import Eligible, StepReport, Unsupported, UpdatePath
from .session.training import TrainingSession

__all__ = [
    "LAMB",
    "MARS",
    "SGD",
    "SOAP",
    "Adafactor",
    "Adam",
    "AdamW",
    "Batches",
    "Callback",
    "CompiledGraph",
    "DeviceStatus",
    "Eligible",
    "Graph",
    "Group",
    "History",
    "KronPSGD",
    "Lion",
    "Model",
    "Muon",
    "NAdamW",
    "OpKind",
    "Optimizer",
    "ParamGroups",
    "PrecisionPolicy",
    "QHAdamW",
    "RAdam",
    "RlxError",
    "Session",
    "SophiaH",
    "StepReport",
    "Stiefel",
    "SymbolicGraph",
    "Tensor",
    "TrainConfig",
    "TrainingSession",
    "Unsupported",
    "UpdatePath",
    "batches",
    "bool",
    "bool_",
    "check_grads",
    "custom_vjp",
    "devices",
    "diff_models",
    "evaluate",
    "f16",
    "f32",
    "grad",
    "grad_with_loss",
    "hessian_diag",
    "hvp",
    "i32",
    "inference",
    "jvp",
    "lift",
    "load_model",
    "lora",
    "lora_params",
    "merge_lora",
    "nn",
    "ops",
    "optim",
    "param_spec",
    "precision_report",
    "previous_gradient",
    "remat",
    "simplify",
    "spec",
    "trace",
    "validate",
    "vjp",
    "vmap",
]
