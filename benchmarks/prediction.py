"""Prediction against ONNX Runtime: the networks of tests/networks, as a Core ML package and as an ONNX model of one
PyTorch module, in one process and in turn.

    python prediction.py [--networks bert vit ...] [--sizes small large] [--batch 1 8] [--store DIR]

Prints a Markdown table of median milliseconds a prediction and of loading. Needs torch, coremltools and onnxruntime;
what was converted is kept in the store and made again only if it is missing. Both sides get two threads.
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TESTS = HERE.parent / "tests" / "networks"
PAUSE = 0.1  # seconds
BUFFERS = 16  # of the decoder's cache before the token that is timed

# The small sizes are those of the tests.
LARGE = {
    "mobilenet_v2": {
        "image": [3, 224, 224],
        "stem": 32,
        "head": 1280,
        "classes": 1000,
        "blocks": [
            [1, 16, 1, 1],
            [6, 24, 2, 2],
            [6, 32, 3, 2],
            [6, 64, 4, 2],
            [6, 96, 3, 1],
            [6, 160, 3, 2],
            [6, 320, 1, 1],
        ],
    },
    "resnet18": {"image": [3, 224, 224], "widths": [64, 128, 256, 512], "blocks": [2, 2, 2, 2], "classes": 1000},
    "unet": {"image": [3, 128, 128], "widths": [16, 32, 64, 128], "classes": 4},
    "gpt2": {"layers": 4, "width": 256, "heads": 8, "vocabulary": 4096, "context": 128},
    "vit": {"image": [3, 224, 224], "patch": 16, "layers": 4, "width": 192, "heads": 3, "classes": 1000},
    "bert": {"layers": 4, "width": 256, "heads": 4, "vocabulary": 4096, "length": 128, "classes": 3},
    "lstm_tagger": {"vocabulary": 4096, "embedding": 128, "hidden": 128, "layers": 2, "length": 64, "tags": 17},
}


def sizes_of(name, size):
    listed = LARGE if size == "large" else json.loads((TESTS / "networks.json").read_text())
    return {key: value for key, value in listed[name].items() if key != "parameters"}


# What only the maker needs


def make(name, size, batch, folder):
    """Writes model.mlpackage, model.onnx and feeds.pickle: feeds of each side, and the output that PyTorch gives."""
    import coremltools as ct
    import torch

    sys.path.insert(0, str(TESTS))
    import make_networks as networks

    torch.manual_seed(3)
    folder.mkdir(parents=True, exist_ok=True)
    sizes = sizes_of(name, size)
    if name == "gpt2":
        feeds = make_decoder(networks, sizes, batch, folder)
    else:
        kind, feeding = networks.NETWORKS[name]
        module = networks.settle(kind(**sizes))
        arrays = {key: np.repeat(value, batch, 0) for key, value in feeding(sizes).items()}
        if "kinds" in arrays:
            arrays["kinds"] %= 2  # longer texts than the tests' have no more kinds
        with torch.no_grad():
            y = module(*map(torch.from_numpy, arrays.values())).numpy()
        networks.convert(module, arrays, ct.precision.FLOAT32).save(str(folder / "model.mlpackage"))
        export(module, arrays, ["y"], folder)
        feeds = {"rlx": arrays, "ort": arrays, "y": y}
    (folder / "feeds.pickle").write_bytes(pickle.dumps(feeds))


def export(module, arrays, outputs, folder):
    import torch

    torch.onnx.export(
        module,
        tuple(map(torch.from_numpy, arrays.values())),
        str(folder / "model.onnx"),
        dynamo=False,
        input_names=list(arrays),
        output_names=outputs,
        opset_version=17,
    )


def make_decoder(networks, sizes, batch, folder):
    """One token after BUFFERS: our cache is state, ONNX Runtime's is passed and grows."""
    import coremltools as ct
    import torch

    module = networks.Gpt2(**sizes).eval()
    shape = list(module.keys.shape)
    shape[1] = batch
    module.keys, module.values = torch.zeros(shape), torch.zeros(shape)
    ids = np.repeat(networks.tokens(sizes["vocabulary"], 1), batch, 0)
    mask = np.zeros((1, 1, 1, BUFFERS + 1), np.float32)

    class Passed(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.module = module

        def forward(self, ids, mask, keys, values):
            x = module.words(ids) + module.places.weight[BUFFERS : BUFFERS + 1][None]
            new_keys, new_values = [], []
            for n, block in enumerate(module.blocks):
                q, k, v = block.attention.split(block.norms[0](x))
                new_keys.append(torch.cat([keys[n], k], 2))
                new_values.append(torch.cat([values[n], v], 2))
                x = x + block.attention.join(q, new_keys[-1], new_values[-1], mask)
                x = x + block.mlp(block.norms[1](x))
            return module.head(module.norm(x)), torch.stack(new_keys), torch.stack(new_values)

    before = np.zeros((*shape[:3], BUFFERS, shape[4]), np.float32)
    passed = {"ids": ids, "mask": mask, "keys": before, "values": before}
    with torch.no_grad():
        y = module(torch.from_numpy(ids), torch.from_numpy(mask)).numpy()
    module.keys.zero_(), module.values.zero_()
    states = [ct.StateType(ct.TensorType(shape=tuple(shape), dtype=np.float16), name=n) for n in ("keys", "values")]
    model = networks.convert(
        module, {"ids": ids, "mask": mask}, ct.precision.FLOAT32, states=states, target=ct.target.iOS18
    )
    model.save(str(folder / "model.mlpackage"))
    export(Passed().eval(), passed, ["y", "new_keys", "new_values"], folder)
    return {"rlx": {"ids": ids, "mask": mask}, "ort": passed, "y": y}


# What is timed


class Ours:
    def __init__(self, folder):
        import rlx_swift as rlx

        self.model = rlx.load_model(folder / "model.mlpackage", device="cpu")
        self.state = self.model.make_state() if self.model.states else None

    def predict(self, feeds):
        return self.model.predict(feeds, self.state)["y"]


class Theirs:
    def __init__(self, folder):
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 2
        self.session = onnxruntime.InferenceSession(
            str(folder / "model.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self.takes = {i.name: np.int64 if i.type == "tensor(int64)" else None for i in self.session.get_inputs()}

    def predict(self, feeds):
        return self.session.run(None, feeds)[0]


SIDES = {"rlx": Ours, "ort": Theirs}


def block(predict, feeds, seconds):
    """Seconds a prediction, over a block of them: after a pause, since the other side's threads still spin a while."""
    time.sleep(PAUSE)
    predict(feeds)
    count, start = 0, time.perf_counter()
    while (passed := time.perf_counter() - start) < seconds:
        predict(feeds)
        count += 1
    return passed / count


def measure(folder, rounds, seconds):
    feeds = pickle.loads((folder / "feeds.pickle").read_bytes())
    loads, runs, models = {side: [] for side in SIDES}, {side: [] for side in SIDES}, {}
    for _ in range(5):
        for side, kind in SIDES.items():
            start = time.perf_counter()
            models[side] = kind(folder)
            loads[side].append(time.perf_counter() - start)
    theirs = models["ort"]
    feeds["ort"] = {k: v for k, v in feeds["ort"].items() if k in theirs.takes}
    for side, model in models.items():
        error = np.abs(model.predict(feeds[side]) - feeds["y"]).max() / np.abs(feeds["y"]).max()
        if not error < 2e-3:
            print(f"# {folder.name}: {side} is off by {error:.1e}", file=sys.stderr)
        for _ in range(5):
            model.predict(feeds[side])
    for _ in range(rounds):
        for side, model in models.items():
            runs[side].append(block(model.predict, feeds[side], seconds))
    return {side: (statistics.median(loads[side][1:]), statistics.median(runs[side])) for side in SIDES}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--networks", nargs="+", default=list(LARGE))
    parser.add_argument("--sizes", nargs="+", default=["small", "large"])
    parser.add_argument("--batch", nargs="+", type=int, default=[1, 8])
    parser.add_argument("--store", type=Path, default=Path.home() / ".cache" / "rlx_swift" / "prediction")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.1, help="of a block of predictions")
    parser.add_argument("--make", nargs=3, metavar=("NAME", "SIZE", "BATCH"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.make:
        name, size, batch = given.make
        make(name, size, int(batch), given.store / f"{name}-{size}-{batch}")
        return
    os.environ.setdefault("RLX_NUM_THREADS", "2")
    print("| network | batch | rlx_swift ms | ONNX Runtime ms | ratio | load ms | ONNX Runtime load ms | ratio |")
    print("|---|--:|--:|--:|--:|--:|--:|--:|")
    for size in given.sizes:
        for name in given.networks:
            for batch in given.batch:
                folder = given.store / f"{name}-{size}-{batch}"
                if not (folder / "feeds.pickle").exists():
                    command = [sys.executable, __file__, "--make", name, size, str(batch), "--store", str(given.store)]
                    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                (load, run), (their_load, their_run) = measure(folder, given.rounds, given.seconds).values()
                print(
                    f"| {name} {size} | {batch} | {run * 1e3:.3f} | {their_run * 1e3:.3f} | {run / their_run:.2f} "
                    f"| {load * 1e3:.1f} | {their_load * 1e3:.1f} | {load / their_load:.2f} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
