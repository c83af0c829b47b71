"""coremltools' own MLModel through our runtime: predictions, batches, states, images, and undoing it."""

from __future__ import annotations

import sys

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.interop import coremltools_backend
from tests.helpers import same
from tests.model_files import ROW, classifier, convert, halves, recurrence, tensor

ct = pytest.importorskip("coremltools")
pytestmark = [
    pytest.mark.skipif(sys.platform == "darwin", reason="coremltools has Core ML there"),
    pytest.mark.skipif(
        not next(status for status in rlx.devices() if status.name == "cpu").available, reason="no native library"
    ),
    # coremltools leaves temporary directories to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]


@pytest.fixture
def installed():
    assert coremltools_backend.install() and coremltools_backend.install()
    yield
    coremltools_backend.uninstall()


def test_predictions_and_batches(installed, tmp_path):
    model = ct.models.MLModel(halves(tmp_path))
    result = model.predict({"x": np.array([[1, 2, 3]])})
    same(result["doubled"], [[2, 4, 6]])
    same(result["total"], [6])
    batch = model.predict([{"x": np.ones((1, 3))}, {"x": np.zeros((1, 3))}])
    same([each["total"] for each in batch], [[3], [0]])
    with pytest.raises(KeyError):
        model.predict({"y": np.ones((1, 3))})
    with pytest.raises(RuntimeError, match="shape"):
        model.predict({"x": np.ones((2, 3))})
    for value in ("text", None, np.ones((1, 3), complex)):
        with pytest.raises(RuntimeError, match="input 'x'"):
            model.predict({"x": value})


def test_states(installed, tmp_path):
    model = ct.models.MLModel(recurrence(tmp_path))
    state = model.make_state()
    for times in (1, 2):
        same(model.predict({"x": np.array(ROW)}, state)["sum"], times * np.array(ROW))
    same(state.read_state("memory"), 2 * np.array(ROW))
    state.write_state("memory", np.zeros(4, np.float16))
    same(model.predict({"x": np.array(ROW)}, state)["sum"], ROW)


def test_classes_and_images(installed, tmp_path):
    pil = pytest.importorskip("PIL.Image")
    from coremltools.converters.mil import Builder as mb

    model = ct.models.MLModel(classifier(tmp_path, ["cat", "dog", "owl"]))
    assert model.predict({"x": np.array([[1.0, 3.0, 2.0]])})["label"] == "dog"
    path = convert(
        tmp_path / "i.mlpackage", lambda x: mb.identity(x=x), [tensor(1, 3, 2, 4)], names=("y",),
        inputs=[ct.ImageType(name="x", shape=(1, 3, 2, 4))],
    )
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 4, 3)
    same(ct.models.MLModel(path).predict({"x": pil.fromarray(pixels)})["y"], pixels.transpose(2, 0, 1)[None])


def test_what_cannot_run_says_so(installed, tmp_path):
    with pytest.warns(RuntimeWarning, match="frobnicate"):
        model = ct.models.MLModel(halves(tmp_path, operation="frobnicate"))
    with pytest.raises(RuntimeError, match="frobnicate"):
        model.predict({"x": np.ones((1, 3))})


def test_uninstalling(tmp_path):
    coremltools_backend.install()
    path = halves(tmp_path)
    kept = ct.models.MLModel(path)
    coremltools_backend.uninstall()
    coremltools_backend.uninstall()
    with pytest.raises(Exception, match="macOS"):
        ct.models.MLModel(path).predict({"x": np.ones((1, 3))})
    same(kept.predict({"x": np.ones((1, 3))})["total"], [3])
