"""Computes optim.npz with PyTorch 2.13 and optax 0.2.8 in float64: `python -m tests.goldens.make_optim`."""

from __future__ import annotations

from pathlib import Path

import jax
import numpy as np
import optax
import torch

from tests.goldens.optim_cases import CASES, LR, SHAPES, gradients, start

FILE = Path(__file__).with_name("optim.npz")
jax.config.update("jax_enable_x64", True)

TORCH = {
    "sgd": lambda p: torch.optim.SGD(p, LR),
    "sgd-momentum": lambda p: torch.optim.SGD(p, LR, momentum=0.9),
    "sgd-dampening": lambda p: torch.optim.SGD(p, LR, momentum=0.9, dampening=0.5),
    "sgd-nesterov": lambda p: torch.optim.SGD(p, LR, momentum=0.9, nesterov=True),
    "sgd-decay": lambda p: torch.optim.SGD(p, LR, momentum=0.9, weight_decay=0.1),
    "adam": lambda p: torch.optim.Adam(p, LR),
    "adam-decay": lambda p: torch.optim.Adam(p, LR, betas=(0.8, 0.95), eps=1e-4, weight_decay=0.1),
    "adam-amsgrad": lambda p: torch.optim.Adam(p, LR, amsgrad=True),
    "adamw": lambda p: torch.optim.AdamW(p, LR, weight_decay=0.1),
    "nadamw": lambda p: torch.optim.NAdam(p, LR, weight_decay=0.1, decoupled_weight_decay=True),
    "radam": lambda p: torch.optim.RAdam(p, LR),
    "radam-decay": lambda p: torch.optim.RAdam(p, LR, betas=(0.9, 0.99), weight_decay=0.1),
}
OPTAX = {
    "lion": optax.lion(LR, b1=0.9, b2=0.99, weight_decay=0.01),
    "lamb": optax.lamb(LR, eps=1e-6, weight_decay=0.01),
    "muon": optax.contrib.muon(LR, eps=1e-7, nesterov=False),  # its Nesterov form corrects a bias, the rule does not
}


def with_torch(name: str, i: int) -> np.ndarray:
    p = torch.tensor(start(i), requires_grad=True)
    optimizer = TORCH[name]([p])
    for g in gradients(i):
        p.grad = torch.tensor(g)
        optimizer.step()
    return p.detach().numpy()


def with_optax(name: str, i: int) -> np.ndarray:
    """Its Muon takes the first axis for the input's, so it gets matrices transposed."""
    p = jax.numpy.asarray(start(i).T)
    state = OPTAX[name].init(p)
    for g in gradients(i):
        updates, state = OPTAX[name].update(jax.numpy.asarray(g.T), state, p)
        p = optax.apply_updates(p, updates)
    return np.asarray(p).T


def computed() -> dict[str, np.ndarray]:
    return {
        f"{name}/{i}": (with_torch if name in TORCH else with_optax)(name, i)
        for name in CASES for i in range(len(SHAPES))
    }


if __name__ == "__main__":
    np.savez_compressed(FILE, **computed())
