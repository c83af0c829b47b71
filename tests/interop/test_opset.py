"""The table of operations against coremltools' own registry."""

from __future__ import annotations

import pytest

from rlx_swift.lower.opset import first_opset, signatures

NOT_ON_THE_WIRE = {"_const_symbolic", "coreml_update_state", "custom_layer"}
NOT_IN_THE_REGISTRY = {"write_state"}
BLOCKS = {"_existing_blocks", "_true_fn", "_false_fn", "_cond", "_body"}  # nested blocks in the file


def registered(opset: int) -> dict:
    """coremltools' classes of the ops in an opset."""
    from coremltools.converters.mil.mil.ops.registry import SSAOpRegistry

    classes = {}
    for name, versions in SSAOpRegistry.core_ops.items():
        for target, cls in versions.items():
            if target.value == opset + 1 and name not in NOT_ON_THE_WIRE:
                classes[name] = cls
    return classes


@pytest.mark.parametrize("opset", [5, 6, 7, 8])
def test_the_operations_of_an_opset(opset: int) -> None:
    ours = set(signatures(opset)) - NOT_IN_THE_REGISTRY
    assert ours == set(registered(opset))


@pytest.mark.parametrize("opset", [5, 6, 7, 8])
def test_the_parameters_of_each_operation(opset: int) -> None:
    for name, cls in registered(opset).items():
        types = {p: t for p, t in cls.input_spec.input_types.items() if p not in BLOCKS}
        signature = signatures(opset)[name]
        assert set(types) == signature.known, name
        needed = {p for p, t in types.items() if not t.optional}
        assert needed <= signature.required, name
        assert not needed & {p for p, _ in signature.defaults} or name == "one_hot", name


def test_when_an_operation_came() -> None:
    assert [first_opset(op) for op in ("add", "fill_like", "resize", "read_state", "none")] == [5, 6, 7, 8, None]
