"""Statuses become exceptions, each with the library's texts, through a stub that fails as it is told."""

from __future__ import annotations

import functools
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from rlx_swift import errors
from rlx_swift._native import Program, Store, check_device, loader
from rlx_swift._native.call import EXCEPTIONS

pytestmark = pytest.mark.usefixtures("stub")


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch, build_stub: Callable[..., Path]) -> loader.Native:
    monkeypatch.setenv("RLX_LIBRARY", str(build_stub()))
    monkeypatch.setattr(loader, "_load_once", functools.cache(loader._load_once.__wrapped__))
    return loader.native()


def test_every_status_has_an_exception(stub: loader.Native) -> None:
    statuses = set(stub.ffi.typeof("rlx_status").relements)
    assert statuses - {"RLX_STATUS_OK", "RLX_STATUS_INTERRUPTED"} == set(EXCEPTIONS)


@pytest.mark.parametrize(("status", "exception"), EXCEPTIONS.items())
def test_exception_keeps_the_texts(stub: loader.Native, status: str, exception: type[errors.RlxError]) -> None:
    code = getattr(stub.lib, status)
    with pytest.raises(errors.RlxError) as caught:
        Program.load(str(code))
    error = caught.value
    assert type(error) is exception
    assert (error.subject, error.problem) == ("the subject", "the message")
    assert error.detail == ("the detail" if code % 2 else "")
    assert str(error) == "the subject: the message" + ("\nthe detail" if code % 2 else "")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is exception and str(again) == str(error)
    assert stub.lib.rlx_live_handles() == 0


@pytest.mark.parametrize(("path", "named"), [("99", "the message"), ("-99", "status 99 \\(unknown to this package\\)")])
def test_unknown_status(path: str, named: str) -> None:
    with pytest.raises(errors.NativeError, match=named):
        Program.load(path)


def test_status_without_an_error_object() -> None:
    with pytest.raises(errors.PackageError, match="native library: it failed with status 5"):
        Program.load("-5")


def test_failing_constructors_own_nothing(stub: loader.Native) -> None:
    with pytest.raises(MemoryError):
        Store()
    with pytest.raises(errors.UnsupportedError):
        Program.load_memory(b"")
    with pytest.raises(errors.DeviceError):
        check_device("coreml")
    assert stub.lib.rlx_live_handles() == 0


def test_unknown_names_list_the_known() -> None:
    with pytest.raises(errors.ConfigError, match="device: expected one of cpu, coreml, got 'gpu'"):
        check_device("gpu")


def test_name_with_nul() -> None:
    with pytest.raises(errors.ConfigError, match="NUL"):
        Program.load("a\0b")
