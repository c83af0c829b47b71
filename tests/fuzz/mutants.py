"""Damaged packages: what a mutant is made of. Each is made from its number alone; knows nothing of who loads it."""

from __future__ import annotations

import copy
import pickle
import random
from collections.abc import Callable
from functools import lru_cache

from rlx_swift.errors import RlxError
from rlx_swift.lower.decode import decode
from rlx_swift.lower.encode import encode
from rlx_swift.lower.program import DTYPES, OPSETS, Array, Block, ListOf, Literal, Model, Operation, StateOf, Stored

from .seeds import Files, seeds


@lru_cache(maxsize=256)
def _decoded(data: bytes) -> bytes:
    """A model as bytes that give a copy of it faster than decoding does."""
    return pickle.dumps(decode(data))


def mutant(number: int) -> Files:
    rng = random.Random(number)
    files = rng.choice(rng.choice(seeds()))
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        files = rng.choice(_WAYS)(files, rng)
    return files


# Bytes


def _with_model(change: Callable[[bytearray, random.Random], bytes | bytearray]) -> Callable[..., Files]:
    def way(files: Files, rng: random.Random) -> Files:
        return Files(files.manifest, bytes(change(bytearray(files.model), rng)), files.weights)

    return way


def _with_weights(change: Callable[[bytearray, random.Random], bytes | bytearray]) -> Callable[..., Files]:
    def way(files: Files, rng: random.Random) -> Files:
        return Files(files.manifest, files.model, bytes(change(bytearray(files.weights), rng)))

    return way


def _flip(data: bytearray, rng: random.Random) -> bytearray:
    for _ in range(rng.choice((1, 1, 2, 8))):
        if data:
            data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return data


def _overwrite(data: bytearray, rng: random.Random) -> bytearray:
    """Numbers that are limits of something, in the place of others."""
    words = (b"\xff" * 9 + b"\x01", b"\x80" * 9 + b"\x01", b"\xff" * 4 + b"\x07", b"\x00", b"\x7f", b"\xff" * 8)
    if data:
        word, at = rng.choice(words), rng.randrange(len(data))
        data[at : at + rng.choice((1, len(word)))] = word
    return data


def _cut(data: bytearray, rng: random.Random) -> bytearray:
    return data[: rng.randrange(len(data) + 1)]


def _drop(data: bytearray, rng: random.Random) -> bytearray:
    at = rng.randrange(len(data) + 1)
    del data[at : at + rng.choice((1, 2, 8, 64))]
    return data


def _repeat(data: bytearray, rng: random.Random) -> bytearray:
    at = rng.randrange(len(data) + 1)
    part = data[at : at + rng.choice((1, 2, 8, 64, 512))]
    data[at:at] = part * rng.choice((1, 2, 50))
    return data


def _splice(data: bytearray, rng: random.Random) -> bytearray:
    other = rng.choice(rng.choice(seeds())).model
    at, begin = rng.randrange(len(data) + 1), rng.randrange(len(other))
    part = other[begin : begin + rng.choice((4, 32, 256))]
    data[at : at + rng.choice((0, len(part)))] = part
    return data


def _records(data: bytearray, rng: random.Random) -> bytearray:
    """A field of the weight file's header or of a record."""
    if len(data) >= 128:
        at = rng.choice((0, 4, 64, 68, 72, 80, 88))
        data[at : at + 8] = rng.choice((0, 1, 2, 64, len(data), 1 << 31, 1 << 62, (1 << 64) - 1)).to_bytes(8, "little")
    return data


def _manifest(files: Files, rng: random.Random) -> Files:
    changed = rng.choice((_flip, _cut, _drop, _repeat))(bytearray(files.manifest), rng)
    place = rng.choice((b"com.apple.CoreML/model", b"../../..", b"/dev"))
    text = bytes(changed).replace(b"com.apple.CoreML/model", place)
    return Files(text, files.model, files.weights)


# Structure


def _with_program(change: Callable[[Model, list[Block], random.Random], None]) -> Callable[..., Files]:
    def way(files: Files, rng: random.Random) -> Files:
        try:
            model: Model = pickle.loads(_decoded(files.model))
            blocks = [block for function in model.functions.values() for block in function.bodies.values()]
            for block in blocks:  # grows while it is walked
                blocks += [inner for operation in block.operations for inner in operation.blocks]
            if blocks:
                change(model, blocks, rng)
            return Files(files.manifest, encode(model), files.weights)
        except (RlxError, KeyError, TypeError, ValueError, OverflowError, RecursionError):
            return files  # a mutant that is no program any more stays as it is

    return way


def _operation(blocks: list[Block], rng: random.Random) -> Operation | None:
    operations = rng.choice(blocks).operations
    return rng.choice(operations) if operations else None


def _rebind(model: Model, blocks: list[Block], rng: random.Random) -> None:
    """An input reads another value: a later one, itself, one of another type."""
    operation = _operation(blocks, rng)
    names = [name for block in blocks for each in block.operations for name, _ in each.outputs]
    if operation and operation.inputs and names:
        operation.inputs[rng.choice(list(operation.inputs))] = [rng.choice(names)] * rng.choice((1, 1, 2, 0))


def _rename(model: Model, blocks: list[Block], rng: random.Random) -> None:
    operation, other = _operation(blocks, rng), _operation(blocks, rng)
    if operation and other and operation.outputs and other.outputs:
        operation.outputs[0] = (other.outputs[0][0], operation.outputs[0][1])


def _retype(model: Model, blocks: list[Block], rng: random.Random) -> None:
    """Another operation with the same operands."""
    operation, other = _operation(blocks, rng), _operation(blocks, rng)
    types = ("while_loop", "cond", "reshape", "conv", "classify", "make_list", "lstm")
    if operation and other:
        operation.type = rng.choice((other.type, *types))


def _resize(model: Model, blocks: list[Block], rng: random.Random) -> None:
    sizes = (0, 1, 2, 3, 7, 1 << 20, 1 << 31, (1 << 31) - 1, 1 << 40, 1 << 62, (1 << 63) - 1, None)
    operation = _operation(blocks, rng)
    function = rng.choice(list(model.functions.values()))
    places = [operation.outputs] if operation else []
    places.append(function.inputs)
    place = rng.choice(places)
    if place:
        index = rng.randrange(len(place))
        name, type = place[index]
        dtype = rng.choice(list(DTYPES)) if rng.random() < 0.3 else getattr(type, "dtype", "fp32")
        shape = list(getattr(type, "shape", ()))
        if shape and rng.random() < 0.8:
            shape[rng.randrange(len(shape))] = rng.choice(sizes)
        else:
            shape = [rng.choice(sizes) for _ in range(rng.choice((0, 1, 2, 5, 9, 40)))]
        array = Array(dtype, tuple(shape))
        place[index] = (name, rng.choice((array, array, array, StateOf(array), ListOf(array, None))))


def _constant(model: Model, blocks: list[Block], rng: random.Random) -> None:
    """Constants of parameters: sizes, axes and paddings that no operation should take."""
    operation = _operation(blocks, rng)
    numbers = (0, 1, -1, 2, -2, 7, 1 << 16, -(1 << 31), (1 << 31) - 1)
    if operation and operation.inputs:
        count = rng.choice((0, 1, 1, 2, 3, 4, 8))
        data = b"".join(rng.choice(numbers).to_bytes(4, "little", signed=True) for _ in range(count or 1))
        array = Array("int32", (count,) if count else ())
        operation.inputs[rng.choice(list(operation.inputs))] = [Literal(array, data)]


def _values(model: Model, blocks: list[Block], rng: random.Random) -> None:
    """A const's value: other numbers of the same type, or a place in the weight file."""
    constants = [o for block in blocks for o in block.operations if "val" in o.attributes]
    if constants:
        operation = rng.choice(constants)
        value = operation.attributes["val"]
        if isinstance(value, Literal) and isinstance(value.data, bytes) and value.data and rng.random() < 0.7:
            operation.attributes["val"] = Literal(value.type, bytes(_flip(bytearray(value.data), rng)))
        else:
            offset = rng.choice((0, 1, 63, 64, 128, 1 << 31, (1 << 64) - 1))
            file = rng.choice(("@model_path/weights/weight.bin", "../x", ""))
            operation.attributes["val"] = Stored(value.type, offset, file)


def _nest(model: Model, blocks: list[Block], rng: random.Random) -> None:
    operation = _operation(blocks, rng)
    if operation:
        inner = copy.deepcopy(rng.choice(blocks))
        for _ in range(rng.choice((1, 2, 20, 90))):
            inner = Block([], [Operation("cond", dict(operation.inputs), [], {}, [inner])], [])
        operation.blocks = [inner] * rng.choice((0, 1, 2, 3))


def _shuffle(model: Model, blocks: list[Block], rng: random.Random) -> None:
    block = rng.choice(blocks)
    rng.choice((rng.shuffle, list.reverse))(block.operations)
    if rng.random() < 0.3:
        block.outputs += [rng.choice(block.outputs)] if block.outputs else ["nothing"]


def _opset(model: Model, blocks: list[Block], rng: random.Random) -> None:
    function = rng.choice(list(model.functions.values()))
    body = next(iter(function.bodies.values()))
    function.opset = rng.choice((*OPSETS, "CoreML99", "", "x"))
    function.bodies = {function.opset: body}


_WAYS: list[Callable[[Files, random.Random], Files]] = [
    *map(_with_model, (_flip, _flip, _overwrite, _cut, _drop, _repeat, _splice)),
    *map(_with_weights, (_flip, _cut, _records, _records)), _manifest,
    *map(_with_program, (_rebind, _rename, _retype, _resize, _resize, _constant, _constant, _values, _nest)),
    *map(_with_program, (_shuffle, _opset)),
]
