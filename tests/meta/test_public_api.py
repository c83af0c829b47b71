"""What users may rely on: the names of the package, and an import that is silent and light."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import rlx_swift as rlx

ROOT = Path(__file__).resolve().parents[2]

# A name may be added; one that goes or changes its meaning breaks users and is said in CHANGELOG.md.
NAMES = """
    SGD Adam AdamW Batches Callback CompiledGraph DeviceStatus Eligible Graph History Model OpKind Optimizer RlxError
    Session StepReport SymbolicGraph Tensor TrainConfig TrainingSession Unsupported UpdatePath batches bool bool_
    Adafactor Group KronPSGD LAMB Lion MARS Muon NAdamW ParamGroups PrecisionPolicy QHAdamW RAdam SOAP SophiaH Stiefel
    hessian_diag precision_report previous_gradient
    check_grads custom_vjp devices diff_models evaluate f16 f32 grad grad_with_loss hvp i32 inference jvp
    lift load_model lora lora_params merge_lora nn ops optim param_spec remat simplify spec trace validate vjp vmap
"""

HEAVY = {  # what takes long to import; of these the package itself needs only those in NEEDED
    "asyncio", "cffi", "concurrent", "coremltools", "ctypes", "email", "html", "http", "hypothesis", "inspect", "jax",
    "json", "logging", "matplotlib", "multiprocessing", "pandas", "PIL", "pycparser", "pytest", "scipy", "sklearn",
    "sqlite3", "ssl", "sympy", "torch", "tqdm", "typing_extensions", "unittest", "xml",
}
NEEDED = {"inspect", "json", "logging"}


def test_names_are_pinned() -> None:
    assert sorted(rlx.__all__) == sorted(NAMES.split())
    assert all(hasattr(rlx, name) for name in rlx.__all__)


def test_import_is_silent_and_light() -> None:
    code = (
        "import sys, numpy; before = set(sys.modules); import rlx_swift\n"
        "print(*{name.split('.')[0] for name in set(sys.modules) - before})"
    )
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stderr == "" and done.stdout.count("\n") == 1
    imported = set(done.stdout.split())
    assert imported & HEAVY <= NEEDED
    assert {name for name in imported if "cython" not in name} <= {"numpy", "rlx_swift", *sys.stdlib_module_names}


def test_package_is_typed() -> None:
    assert (ROOT / "rlx_swift/py.typed").is_file()
