"""Writes fixtures/step.mlmodel with coremltools 9.0; run again only to change it."""

import pathlib
import tempfile

import coremltools as ct
from coremltools.converters.mil.mil import Builder as mb
from coremltools.converters.mil.mil import types


@mb.program(
    input_specs=[
        mb.TensorSpec(shape=(2, 3)), mb.TensorSpec(shape=(2, 3)), mb.TensorSpec(shape=(2,), dtype=types.int32),
    ],
    opset_version=ct.target.iOS17,
)
def step(w, x, ids):
    """new_w = w + x; total = sum(new_w); rows = w[ids]."""
    new_w = mb.add(x=w, y=x, name="new_w")
    total = mb.reduce_sum(x=new_w, axes=[0, 1], keep_dims=True, name="total")
    return new_w, total, mb.gather(x=w, indices=ids, axis=0, name="rows")


model = ct.convert(
    step, convert_to="mlprogram", minimum_deployment_target=ct.target.iOS17, pass_pipeline=ct.PassPipeline.EMPTY,
    compute_precision=ct.precision.FLOAT32,
)
with tempfile.TemporaryDirectory() as folder:
    package = pathlib.Path(folder, "step.mlpackage")
    model.save(str(package))
    written = (package / "Data/com.apple.CoreML/model.mlmodel").read_bytes()
(pathlib.Path(__file__).parent / "fixtures/step.mlmodel").write_bytes(written)
