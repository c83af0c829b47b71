"""Every error type of the package, each with its facts; knows nothing else of the package."""

from __future__ import annotations


class RlxError(Exception):
    """Base of all errors raised on purpose.

    Attributes:
        subject: the op, argument, feature or file at fault.
        problem: what was expected and what came instead.
        hint: what to do about it; may be empty.
        detail: longer text kept whole (Core ML's, the operating system's, a graph); may be empty.
    """

    detail: str = ""

    def __init__(self, subject: str, problem: str, hint: str = "") -> None:
        self.subject, self.problem, self.hint = subject, problem, hint
        super().__init__(subject, problem, hint)

    def __str__(self) -> str:
        text = f"{self.subject}: {self.problem}" + (f"; {self.hint}" if self.hint else "")
        return f"{text}\n{self.detail}" if self.detail else text


class ShapeError(RlxError, ValueError):
    """A shape, axis or rank that an op or feature cannot take."""


class DTypeError(RlxError, TypeError):
    """An element type that an op or feature cannot take."""


class GraphError(RlxError, ValueError):
    """A graph that is not well formed, or a use of it that its structure forbids."""


class NotDifferentiableError(RlxError, ValueError):
    """A derivative was asked of something that has none; the problem says why."""


class NameNotFoundError(RlxError, KeyError):
    """No input, param, output or tensor has that name."""


class FeedError(RlxError, ValueError):
    """A value fed to a program that it cannot take: missing, unknown, wrong, or an index out of range."""


class ConfigError(RlxError, ValueError):
    """Settings that contradict each other or make no sense."""


class SessionError(RlxError, RuntimeError):
    """A call that the state of the session forbids."""


class NonFiniteError(RlxError, FloatingPointError):
    """Training that has left the finite numbers: the loss, or every gradient in a row."""


class LoweringError(RlxError, ValueError):
    """A graph that cannot be expressed as a Core ML program."""


class ValidationError(RlxError, ValueError):
    """A Core ML package that breaks a rule of the format or of Core ML."""


class PackageError(RlxError, ValueError):
    """A file that is not a readable Core ML package."""


class CheckpointError(RlxError, ValueError):
    """A checkpoint that is not whole, or of another graph."""


class UnsupportedError(RlxError, NotImplementedError):
    """A valid program or request that needs something that is not there."""


class DeviceError(RlxError, RuntimeError):
    """A device that is not present, or that failed."""


class NativeError(RlxError, RuntimeError):
    """A fault inside the native library, with the text it gave."""


class TimeLimitError(RlxError, TimeoutError):
    """A prediction that was given up after the time that it was allowed."""


class OutOfMemoryError(NativeError, MemoryError):
    """The native library could not get the memory that a program or tensor needs."""
