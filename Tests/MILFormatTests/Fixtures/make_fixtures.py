"""Writes the fixtures beside this file with coremltools 9.0. Run again only to add one."""

import pathlib
import shutil

import coremltools as ct
import numpy as np
from coremltools.converters.mil.mil import Builder as mb
from coremltools.converters.mil.mil import types
from coremltools.models import datatypes, neural_network

HERE = pathlib.Path(__file__).parent
WEIGHT = (np.arange(24, dtype=np.float32).reshape(4, 6) - 7.5) / 4


def convert(program, target, name, **options):
    options.setdefault("pass_pipeline", ct.PassPipeline.EMPTY)
    model = ct.convert(program, convert_to="mlprogram", minimum_deployment_target=target, **options)
    save(model, name)
    return model


def save(model, name):
    path = HERE / name
    shutil.rmtree(path, ignore_errors=True)
    path.unlink(missing_ok=True) if path.is_file() else None
    model.save(str(path))


def spec(shape, dtype=types.fp32):
    return mb.TensorSpec(shape=shape, dtype=dtype)


@mb.program(input_specs=[spec((2, 4))], opset_version=ct.target.iOS17)
def linear32(x):
    return mb.add(x=mb.matmul(x=x, y=WEIGHT, name="product"), y=np.float32(0.5), name="y")


@mb.program(input_specs=[spec((2, 4), types.fp16)], opset_version=ct.target.iOS17)
def linear16(x):
    return mb.matmul(x=x, y=WEIGHT.astype(np.float16), name="y")


@mb.program(input_specs=[spec((16,), types.int32)], opset_version=ct.target.iOS18)
def blobs(x):
    """Constants of every element type that the writer puts into the weight file, one immediate of each kind."""
    ids = np.arange(16, dtype=np.int32) * 1000 - 5
    outputs = [mb.add(x=x, y=mb.const(val=ids, name="ids"), name="sum")]
    for dtype in (np.int8, np.uint8, np.int16, np.uint16):
        values = mb.const(val=np.arange(16).astype(dtype), name=np.dtype(dtype).name)
        outputs.append(mb.cast(x=values, dtype="int32", name=f"from_{np.dtype(dtype).name}"))
    flags = mb.const(val=np.array([True, False] * 8), name="flags")
    outputs.append(mb.cast(x=flags, dtype="int32", name="from_bool"))
    return tuple(outputs)


@mb.program(input_specs=[spec((1, 8), types.fp16)], opset_version=ct.target.iOS18)
def subbyte(x):
    """int4 weights with one scale a row, packed two to a byte."""
    weight = (np.arange(40).reshape(5, 8) % 16 - 8).astype(types.np_int4_dtype)
    scale = np.array([[0.5], [1], [2], [4], [8]], dtype=np.float16)
    dense = mb.constexpr_blockwise_shift_scale(data=weight, scale=scale, name="dense")
    return mb.matmul(x=x, y=dense, transpose_y=True, name="y")


@mb.program(
    input_specs=[spec((1, 4), types.fp16), mb.StateTensorSpec((1, 4), dtype=types.fp16)],
    opset_version=ct.target.iOS18,
)
def accumulator(x, total):
    new = mb.add(x=mb.read_state(input=total), y=x, name="new")
    return mb.identity(x=mb.coreml_update_state(state=total, value=new), name="y")


@mb.program(input_specs=[spec((3,)), spec((1,), types.int32)], opset_version=ct.target.iOS17)
def control(x, n):
    """Doubles x n times, then negates it if its sum is above 100."""
    count = mb.squeeze(x=n, name="count")

    def condition(i, v):
        return mb.less(x=i, y=count)

    def body(i, v):
        return mb.add(x=i, y=1), mb.add(x=v, y=v)

    _, doubled = mb.while_loop(_cond=condition, _body=body, loop_vars=(0, x), name="loop")
    large = mb.greater(x=mb.reduce_sum(x=doubled, keep_dims=False), y=np.float32(100))
    return mb.cond(
        pred=large,
        _true_fn=lambda: mb.mul(x=doubled, y=np.float32(-1)),
        _false_fn=lambda: mb.identity(x=doubled),
        name="y",
    )


@mb.program(
    input_specs=[spec((8, 3)), spec((8, 1)), spec((3, 1)), spec((1,))], opset_version=ct.target.iOS17
)
def linreg(x, target, W, lr):
    """One step of gradient descent on sum((x @ W - target)^2)."""
    prediction = mb.matmul(x=x, y=W, name="prediction")
    error = mb.sub(x=prediction, y=target, name="error")
    loss = mb.reduce_sum(x=mb.mul(x=error, y=error), keep_dims=False, name="loss")
    gradient = mb.mul(x=mb.matmul(x=x, y=error, transpose_x=True), y=np.float32(2), name="gradient")
    return loss, prediction, mb.sub(x=W, y=mb.mul(x=gradient, y=lr), name="W_next")


@mb.program(input_specs=[spec((2, 2)), spec((2, 2)), spec((3,), types.int32)], opset_version=ct.target.iOS17)
def swap(a, b, ids):
    """Each of two tensors becomes the other; ids pass through, one higher."""
    ids_next = mb.add(x=ids, y=np.int32(1), name="ids_next")
    return mb.mul(x=b, y=np.float32(1), name="a_next"), mb.mul(x=a, y=np.float32(1), name="b_next"), ids_next


def classifier(x):
    scores = mb.matmul(x=x, y=WEIGHT[:, :3])
    return mb.softmax(x=scores, axis=-1, name="scores")


def flexible(x):
    return mb.relu(x=x, name="y")


def main():
    convert(linear32, ct.target.iOS17, "linear32.mlpackage", compute_precision=ct.precision.FLOAT32)
    convert(linear16, ct.target.iOS17, "linear16.mlpackage")
    convert(blobs, ct.target.iOS18, "blobs.mlpackage")
    convert(subbyte, ct.target.iOS18, "subbyte.mlpackage")
    convert(accumulator, ct.target.iOS18, "state.mlpackage")
    convert(control, ct.target.iOS17, "control.mlpackage", compute_precision=ct.precision.FLOAT32)

    convert(linreg, ct.target.iOS17, "linreg.mlpackage", compute_precision=ct.precision.FLOAT32)
    convert(swap, ct.target.iOS17, "swap.mlpackage", compute_precision=ct.precision.FLOAT32)

    labelled = mb.program(input_specs=[spec((1, 4))], opset_version=ct.target.iOS17)(classifier)
    convert(
        labelled, ct.target.iOS17, "classifier.mlpackage", compute_precision=ct.precision.FLOAT32,
        classifier_config=ct.ClassifierConfig(["cat", "dog", "élan"]),
    )

    n = ct.converters.mil.mil.get_new_symbol()
    ranged = mb.program(input_specs=[spec((n, 4))], opset_version=ct.target.iOS17)(flexible)
    convert(
        ranged, ct.target.iOS17, "flexible.mlpackage", compute_precision=ct.precision.FLOAT32,
        inputs=[ct.TensorType(name="x", shape=(ct.RangeDim(1, 9, default=2), 4))],
    )
    enumerated = mb.program(input_specs=[spec((n, 4))], opset_version=ct.target.iOS17)(flexible)
    convert(
        enumerated, ct.target.iOS17, "enumerated.mlpackage", compute_precision=ct.precision.FLOAT32,
        inputs=[ct.TensorType(name="x", shape=ct.EnumeratedShapes([(2, 4), (5, 4)], default=(2, 4)))],
    )

    multi = ct.utils.MultiFunctionDescriptor()
    multi.add_function(str(HERE / "linear16.mlpackage"), "main", "first")
    multi.add_function(str(HERE / "subbyte.mlpackage"), "main", "second")
    multi.default_function_name = "second"
    shutil.rmtree(HERE / "functions.mlpackage", ignore_errors=True)
    ct.utils.save_multifunction(multi, str(HERE / "functions.mlpackage"))

    builder = neural_network.NeuralNetworkBuilder(
        [("x", datatypes.Array(4))], [("y", datatypes.Array(6))], disable_rank5_shape_mapping=True
    )
    builder.add_inner_product("dense", WEIGHT.T, None, 4, 6, False, "x", "y")
    save(ct.models.MLModel(builder.spec), "neural.mlmodel")


if __name__ == "__main__":
    main()
