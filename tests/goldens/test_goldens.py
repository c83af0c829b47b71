"""The stored values made again and compared, where PyTorch 2.13 and optax are: `python -m pytest tests/goldens`."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest

MAKERS = {"make_ops": "torch", "make_networks": "torch", "make_optim": "optax"}


@pytest.mark.filterwarnings("default")  # PyTorch warns of its own plans
@pytest.mark.parametrize("maker", MAKERS)
def test_what_is_stored_is_what_is_computed(maker):
    pytest.importorskip("torch")
    pytest.importorskip(MAKERS[maker])
    module = importlib.import_module(f"tests.goldens.{maker}")
    arrays = module.computed()
    with np.load(module.FILE) as stored:
        assert set(stored) == set(arrays)
        for name, value in arrays.items():
            np.testing.assert_allclose(stored[name], value, rtol=1e-5, atol=1e-8, err_msg=name)


def test_they_are_small():
    assert sum(file.stat().st_size for file in Path(__file__).parent.glob("*.npz")) < 20e6
