"""What models take and give beside arrays of one shape, on our runtime: shapes, defaults, images, classes, states."""

from __future__ import annotations

import numpy as np
import pytest

import rlx_swift as rlx
from rlx_swift.errors import ConfigError, DTypeError, FeedError, NameNotFoundError, SessionError
from tests.helpers import same
from tests.model_files import ROW, classifier, convert, recurrence, tensor

pytestmark = [
    pytest.mark.skipif(
        not next(status for status in rlx.devices() if status.name == "cpu").available, reason="no native library"
    ),
    # coremltools leaves temporary directories to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]
ct = pytest.importorskip("coremltools")
mb = pytest.importorskip("coremltools.converters.mil").Builder
get_new_symbol = pytest.importorskip("coremltools.converters.mil.mil").get_new_symbol


def load(path, **options):
    return rlx.load_model(path, device="cpu", **options)


def flexible(path, shape, build=None):
    """y = x + its row sums, for x of a flexible shape (n, 3)."""
    from coremltools.converters.mil.mil import get_new_symbol

    def add(x):
        return mb.add(x=x, y=mb.reduce_sum(x=x, axes=[1], keep_dims=True))

    inputs = [ct.TensorType(name="x", shape=shape)]
    return convert(path, build or add, [tensor(get_new_symbol(), 3)], inputs=inputs)


def rows(n):
    x = np.arange(n * 3, dtype=np.float32).reshape(n, 3)
    return x, x + x.sum(1, keepdims=True)


def test_ranges_of_shapes(tmp_path):
    model = load(flexible(tmp_path / "r.mlpackage", (ct.RangeDim(2, 5, default=3), 3)))
    assert model.inputs["x"].shape == (3, 3)
    for n in (2, 5, 3, 2, 4):
        x, y = rows(n)
        (got,) = model.predict({"x": x}).values()
        same(got, y)
    for n in (1, 6):
        with pytest.raises(FeedError, match=r"\(2..5, 3\)"):
            model.predict({"x": rows(n)[0]})


def test_enumerated_shapes(tmp_path):
    model = load(flexible(tmp_path / "e.mlpackage", ct.EnumeratedShapes([(2, 3), (4, 3)], default=(4, 3))))
    assert model.inputs["x"].shape == (4, 3)
    for n in (2, 4):
        x, y = rows(n)
        (got,) = model.predict({"x": x}).values()
        same(got, y)
    with pytest.raises(FeedError, match="one of"):
        model.predict({"x": rows(3)[0]})


def test_many_shapes_keep_few_plans(tmp_path):
    model = load(flexible(tmp_path / "m.mlpackage", (ct.RangeDim(1, 64, default=1), 3)))
    for n in [*range(1, 40), 3, 1]:
        x, y = rows(n)
        same(next(iter(model.predict({"x": x}).values())), y)


def test_optional_inputs(tmp_path):
    path = convert(
        tmp_path / "o.mlpackage", lambda x, y: mb.sub(x=x, y=y), [tensor(2), tensor(2)],
        inputs=[
            ct.TensorType(name="x", shape=(2,)),
            ct.TensorType(name="y", shape=(2,), default_value=np.full(2, 3, np.float32)),
        ],
    )
    model = load(path)
    for feeds, expected in (({"x": [5, 6]}, [2, 3]), ({"x": [5, 6], "y": [1, 1]}, [4, 5])):
        (got,) = model.predict(feeds).values()
        same(got, expected)
    with pytest.raises(FeedError, match="'x'"):
        model.predict({"y": [1, 1]})


@pytest.mark.parametrize("color", ["RGB", "BGR", "GRAYSCALE"])
def test_images(color, tmp_path):
    pil = pytest.importorskip("PIL.Image")
    channels = 1 if color == "GRAYSCALE" else 3
    layout = getattr(ct.colorlayout, color)
    path = convert(
        tmp_path / "i.mlpackage", lambda x: mb.identity(x=x), [tensor(1, channels, 2, 4)],
        inputs=[
            ct.ImageType(
                name="x", shape=(1, channels, 2, 4), scale=0.5, bias=[1.0] * channels, color_layout=layout,
            ),
        ],
    )
    model = load(path)
    pixels = np.random.default_rng(0).integers(0, 256, (2, 4, 3)).astype(np.uint8)
    if channels == 1:
        pixels = pixels[..., 0]
    planes = pixels[None] if channels == 1 else pixels.transpose(2, 0, 1)
    expected = (planes[::-1] if color == "BGR" else planes)[None] * 0.5 + 1
    for image in (pixels, pil.fromarray(pixels)):
        (got,) = model.predict({"x": image}).values()
        same(got, expected)
    for wrong in (pixels[:1], np.zeros(3), "text"):
        with pytest.raises((FeedError, DTypeError)):
            model.predict({"x": wrong})


@pytest.mark.parametrize("enumerated", [True, False])
def test_images_of_several_sizes(enumerated, tmp_path):
    size = ct.RangeDim(2, 6, default=4)
    shape = ct.EnumeratedShapes([(1, 3, 4, 4), (1, 3, 2, 6)], (1, 3, 4, 4)) if enumerated else (1, 3, size, size)
    path = convert(
        tmp_path / "i.mlpackage", lambda x: mb.add(x=x, y=np.float32(1)),
        [tensor(1, 3, get_new_symbol(), get_new_symbol())],
        inputs=[ct.ImageType(name="x", shape=shape)],
    )
    model = load(path)
    assert model.inputs["x"].shape == (1, 3, 4, 4)
    for height, width in ((4, 4), (2, 6)):
        pixels = np.random.default_rng(0).integers(0, 256, (height, width, 3)).astype(np.uint8)
        (got,) = model.predict({"x": pixels}).values()
        same(got, pixels.transpose(2, 0, 1)[None] + np.float32(1))
    for height, width in ((6, 1), (7, 4), *([(6, 2)] if enumerated else [])):
        with pytest.raises(FeedError, match="expected shape"):
            model.predict({"x": np.zeros((height, width, 3), np.uint8)})


def test_image_outputs(tmp_path):
    def change(spec):
        image = spec.description.output[0].type.imageType
        image.width = image.height = 2
        image.colorSpace = image.ColorSpace.Value("BGR")

    path = convert(
        tmp_path / "i.mlpackage", lambda x: mb.mul(x=x, y=np.float32(1.5)), [tensor(1, 3, 2, 2)], names=("image",),
        inputs=[ct.ImageType(name="x", shape=(1, 3, 2, 2))], change=change,
    )
    pixels = np.arange(12, dtype=np.uint8).reshape(2, 2, 3) * 20
    got = load(path).predict({"x": pixels})["image"]
    assert got.dtype == np.uint8
    same(got, np.clip(np.rint(pixels[..., ::-1] * 1.5), 0, 255))


def test_classes(tmp_path):
    model = load(classifier(tmp_path, ["cat", "dog", "owl"]))
    result = model.predict({"x": [[1, 3, 2]]})
    assert result.pop("label") == "dog"
    (probabilities,) = result.values()
    assert max(probabilities, key=probabilities.get) == "dog" and abs(sum(probabilities.values()) - 1) < 1e-6


def test_states(tmp_path):
    model = load(recurrence(tmp_path))
    state, other = model.make_state(), model.make_state()
    assert state.names == ("memory",) and model.states["memory"].shape == (4,)
    for times in (1, 2):
        same(model.predict({"x": ROW}, state)["sum"], times * np.array(ROW))
    same(model.predict({"x": ROW}, other)["sum"], ROW)
    same(model.predict({"x": ROW})["sum"], ROW)
    assert state.read("memory").dtype == np.float16
    same(state.read("memory"), 2 * np.array(ROW))
    state.write("memory", [1, 1, 1, 1])
    same(model.predict({"x": ROW}, state)["sum"], np.array(ROW) + 1)
    state.reset()
    same(state.read("memory"), np.zeros(4))
    with pytest.raises(NameNotFoundError):
        state.read("other")
    with pytest.raises(FeedError):
        state.write("memory", [1, 2])
    with pytest.raises((ConfigError, SessionError), match="another model"):
        load(recurrence(tmp_path)).predict({"x": ROW}, state)
    with pytest.raises(ConfigError, match="make_state"):
        model.predict({"x": ROW}, {"memory": ROW})


def test_values_that_decide(tmp_path):
    """A loop whose count, a branch whose side and a shape that is an input's value."""
    def build(x, n):
        def goes_on(i, a):
            return mb.squeeze(x=mb.less(x=i, y=n))

        def body(i, a):
            return mb.add(x=i, y=np.int32([1])), mb.mul(x=a, y=np.float32(2))

        _, a = mb.while_loop(_cond=goes_on, _body=body, loop_vars=(mb.const(val=np.int32([0])), x))
        large = mb.squeeze(x=mb.greater(x=n, y=np.int32([3])))
        b = mb.cond(pred=large, _true_fn=lambda: mb.add(x=a, y=np.float32(100)), _false_fn=lambda: mb.identity(x=a))
        return b, mb.reshape(x=x, shape=mb.concat(values=[n, np.int32([-1])], axis=0))

    model = load(convert(tmp_path / "l.mlpackage", build, [tensor(6), tensor(1, dtype="int32")], names=("y", "z")))
    x = np.arange(6, dtype=np.float32)
    for n in (1, 2, 3, 6, 1):
        got = model.predict({"x": x, "n": [n]})
        same(got["y"], x * 2**n + (100 if n > 3 else 0))
        same(got["z"], x.reshape(n, -1))


def test_batches_and_metadata(tmp_path):
    model = load(recurrence(tmp_path))
    same([result["sum"] for result in model.predict_batch([{"x": ROW}, {"x": [0] * 4}])], [ROW, [0] * 4])
    assert isinstance(model.metadata, dict)
