"""Layers and initial values over the ops."""

from . import init as init
