"""Layers and initial values over the ops: a layer only names and creates params and calls ops."""

from . import init as init
from .attention import Attention, TransformerBlock
from .layer import Layer
from .layers import Conv, ConvTranspose, Dense, Dropout, Embedding, Sequential
from .norms import BatchNorm, GroupNorm, InstanceNorm, LayerNorm, RMSNorm
from .recurrent import GRU, LSTM

__all__ = [
    "GRU",
    "LSTM",
    "Attention",
    "BatchNorm",
    "Conv",
    "ConvTranspose",
    "Dense",
    "Dropout",
    "Embedding",
    "GroupNorm",
    "InstanceNorm",
    "Layer",
    "LayerNorm",
    "RMSNorm",
    "Sequential",
    "TransformerBlock",
    "init",
]
