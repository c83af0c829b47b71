"""Small packages as coremltools writes them, for tests of what users load."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

ROW = [1.0, 2.0, 3.0, 4.0]


def convert(
    path: Path, function: Callable[..., Any], specs: Sequence[Any], target: str = "iOS18", names: Sequence[str] = (),
    change: Callable[[Any], None] | None = None, **options: Any,
) -> str:
    """Saves what `function` builds with coremltools' builder; `change` may edit the specification before.

    The program is written as it is built: no pass changes it. `names` are those of the outputs.
    """
    import coremltools as ct
    from coremltools.converters.mil import Builder as mb
    from coremltools.models.utils import save_spec

    opset = getattr(ct.target, target)
    program = mb.program(input_specs=list(specs), opset_version=opset)(function)
    for output, name in zip(program.functions["main"].outputs, names, strict=False):
        output.name = name
    model = ct.convert(
        program, convert_to="mlprogram", minimum_deployment_target=opset, pass_pipeline=ct.PassPipeline.EMPTY,
        compute_precision=ct.precision.FLOAT32, skip_model_load=True, **options,
    )
    if change is None:
        model.save(str(path))
    else:
        spec = model.get_spec()
        change(spec)
        save_spec(spec, str(path), weights_dir=model.weights_dir)
    return str(path)


def tensor(*shape: Any, dtype: str = "fp32") -> Any:
    from coremltools.converters.mil import Builder as mb
    from coremltools.converters.mil.mil import types

    return mb.TensorSpec(shape=shape, dtype=getattr(types, dtype))


def halves(folder: Path, operation: str = "mul") -> str:
    """x f16 (1, 3) -> doubled = 2 x, total = its sum, of rank 0; `operation` is written in place of the mul."""
    from coremltools.converters.mil import Builder as mb

    def build(x: Any) -> Any:
        return mb.mul(x=x, y=np.float16(2)), mb.reduce_sum(x=x, keep_dims=False)

    def change(spec: Any) -> None:
        for block in spec.mlProgram.functions["main"].block_specializations.values():
            for each in block.operations:
                each.type = operation if each.type == "mul" else each.type

    name = folder / f"halves_{operation}.mlpackage"
    return convert(name, build, [tensor(1, 3, dtype="fp16")], names=("doubled", "total"), change=change)


def scalar(folder: Path) -> str:
    """x, y f32 (1, 1) -> difference = x - y, of rank 0."""
    from coremltools.converters.mil import Builder as mb

    def build(x: Any, y: Any) -> Any:
        return mb.squeeze(x=mb.sub(x=x, y=y))

    return convert(folder / "scalar.mlpackage", build, [tensor(1, 1), tensor(1, 1)], names=("difference",))


def classifier(folder: Path, labels: Sequence[Any]) -> str:
    """x f32 (1, 3) -> softmax as label, and the probabilities."""
    import coremltools as ct
    from coremltools.converters.mil import Builder as mb

    def build(x: Any) -> Any:
        return mb.softmax(x=x, axis=1)

    config = ct.ClassifierConfig(list(labels), predicted_feature_name="label")
    name = folder / f"classifier_{labels[0]}.mlpackage"
    return convert(name, build, [tensor(1, 3)], classifier_config=config)


def recurrence(folder: Path) -> str:
    """x f16 (4,) -> sum = the state `memory` = memory + x."""
    from coremltools.converters.mil import Builder as mb
    from coremltools.converters.mil.mil import types

    def build(x: Any, memory: Any) -> Any:
        total = mb.add(x=mb.read_state(input=memory), y=x)
        return mb.coreml_update_state(state=memory, value=total)

    state = mb.StateTensorSpec((4,), dtype=types.fp16)
    return convert(folder / "recurrence.mlpackage", build, [tensor(4, dtype="fp16"), state], names=("sum",))
