"""What only an Apple system can answer, and the cases that ask it; what no case asks says why."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Question:
    """Attributes:
    text: what is asked.
    cases: patterns of the names of cases that ask it.
    left_out: what of it no case asks, and why.
    """

    text: str
    cases: tuple[str, ...]
    left_out: str = ""

    def asks(self, name: str) -> bool:
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in self.cases)


CHECKLIST = (
    Question(
        "Which inputs and outputs are taken: few and many elements, rank 0 in both spellings, passed through, twice, "
        "constant, never read, thousands, large, of size 0?",
        ("io/*", "program/a *", "program/an *"),
    ),
    Question("Do the order and case of 100 names matter; does each value come under its own?", ("io/* inputs and *",)),
    Question(
        "Products of two inputs: inner sizes, ranks, transposes, sums that leave f16, f32 against float64.",
        ("matmul/*", "program/linear *"),
    ),
    Question(
        "Convolutions by kernels made at run time: strides, groups, batches, pads, biases, transposed with and "
        "without an output shape.", ("conv/*", "program/conv*"),
    ),
    Question(
        "The gradient of a kernel as a convolution and by patches; a dilated kernel made at run time.",
        ("conv/gradient *", "conv/dilated", "program/conv with a dilated *"),
    ),
    Question(
        "Norms with gamma and beta made at run time, written out and as operations; a mean made at run time.",
        ("norm/*", "program/batch_norm *", "program/layer_norm *"),
    ),
    Question(
        "Gather and scatter: indices that are negative, out of range, repeated, of rank 0; the order of sums.",
        ("index/gather*", "index/along *", "index/scatter *", "program/gather*", "program/scatter*"),
    ),
    Question(
        "Each operation of backward graphs alone.",
        ("index/one hot", "index/top *", "index/argmax *", "reduce/*", "move/*", "program/sliding_windows",
         "program/casts *", "program/select *"),
    ),
    Question(
        "Numbers: subnormal, infinite, NaN, halves, casts to integers, large integers, exp, small addends, thirds.",
        ("number/*", "program/round *", "program/cast of *"),
    ),
    Question(
        "Are results the same from run to run, and from process to process?",
        ("matmul/256 cubed", "conv/2d same", "training/* in one program"),
    ),
    Question(
        "Attention of 1 to 16 samples, with a second use of its weights, and as one operation with a mask.",
        ("attention/*", "program/attention *"),
    ),
    Question(
        "Training in one program: 2 to 32 layers with Adam, several updates; loading by the number of operations.",
        ("training/*", "compile/*"),
    ),
    Question(
        "The executor: memory over many predictions, outputs in our own buffers, the cost of weights, f16 features.",
        ("executor/*",),
        "IOSurface buffers, buffers that begin with a page and an output over its own input: the library offers none, "
        "its buffers are aligned to 64 bytes. Asynchronous predictions: it makes none, since one queue of its own "
        "keeps predictions in order.",
    ),
    Question(
        "Are states of f32 taken, and how many?", ("states/*",),
        "Writing and reading states at each step: the library keeps what it trains in inputs and outputs.",
    ),
    Question(
        "What is refused, and how: an error, an exception, the end of the process; is a good program harmed after it?",
        ("refusal/*",),
    ),
    Question(
        "From which size on is a step planned for the Neural Engine, and faster there than on our own runtime; ranks, "
        "priorities.", ("placement/*", "executor/* priority"),
    ),
    Question(
        "How do systems differ?", ("*",),
        "A report is of one system: `rlx-swift doctor --compare` shows how two differ.",
    ),
)


def unasked(names: Iterable[str]) -> list[Question]:
    """The questions that no case of those asks."""
    listed = list(names)
    return [question for question in CHECKLIST if not any(map(question.asks, listed))]
