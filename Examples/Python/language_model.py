"""A two-layer transformer that learns to continue a text, byte by byte.

    python Examples/Python/language_model.py [TEXT_FILE] [--steps 300] [--device cpu]
"""

import argparse
from pathlib import Path

import numpy as np

import rlx_swift as rlx
from rlx_swift import ops
from rlx_swift.nn import init

VOCABULARY, WIDTH, HEADS, LAYERS, LENGTH, BATCH = 128, 64, 4, 2, 64, 8
MASK = np.triu(np.full((LENGTH, LENGTH), -1e9, np.float32), 1)  # a position sees itself and what is before


def attention(g, x, name):
    head = WIDTH // HEADS
    qkv = x @ g.param(f"{name}.qkv", (WIDTH, 3 * WIDTH), init.glorot_uniform())
    q, k, v = (qkv.reshape(BATCH, LENGTH, 3, HEADS, head)[:, :, i].transpose(0, 2, 1, 3) for i in range(3))
    scores = ops.matmul(q, k, transpose_y=True) * head**-0.5 + MASK
    mixed = ops.softmax(scores) @ v
    return mixed.transpose(0, 2, 1, 3).reshape(BATCH, LENGTH, WIDTH) @ g.param(
        f"{name}.out", (WIDTH, WIDTH), init.glorot_uniform()
    )


def norm(g, x, name):
    return ops.layer_norm(x, g.param(f"{name}.gamma", WIDTH, 1.0), g.param(f"{name}.beta", WIDTH, 0.0))


def feed_forward(g, x, name):
    hidden = ops.gelu(x @ g.param(f"{name}.up", (WIDTH, 4 * WIDTH), init.glorot_uniform()))
    return hidden @ g.param(f"{name}.down", (4 * WIDTH, WIDTH), init.glorot_uniform())


def language_model():
    g = rlx.Graph("language_model")
    ids, targets = (g.input(name, (BATCH, LENGTH), rlx.i32) for name in ("ids", "targets"))
    x = ops.gather(g.param("tokens", (VOCABULARY, WIDTH), init.normal()), ids)
    x = x + g.param("positions", (LENGTH, WIDTH), init.normal())
    for i in range(LAYERS):
        x = x + attention(g, norm(g, x, f"layer{i}.norm1"), f"layer{i}.attention")
        x = x + feed_forward(g, norm(g, x, f"layer{i}.norm2"), f"layer{i}.mlp")
    logits = norm(g, x, "norm") @ g.param("head", (WIDTH, VOCABULARY), init.normal())
    g.set_outputs({"loss": ops.softmax_cross_entropy_with_logits(logits, targets).mean(), "logits": logits})
    return g


def sample(text, rng):
    starts = rng.integers(0, len(text) - LENGTH - 1, BATCH)
    rows = np.stack([text[s : s + LENGTH + 1] for s in starts])
    return {"ids": rows[:, :-1], "targets": rows[:, 1:]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("text", nargs="?", default=Path(__file__).parents[2] / "LICENSE", help="a text file")
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--device", choices=["numpy", "cpu", "coreml"], help="the best present by default")
    options = parser.parse_args()
    text = np.frombuffer(Path(options.text).read_bytes(), np.uint8).astype(np.int32) % VOCABULARY
    if len(text) < LENGTH + 2:
        parser.error(f"{options.text} has fewer than {LENGTH + 2} bytes")
    rng = np.random.default_rng(0)
    config = rlx.TrainConfig(lr=3e-3, optimizer=rlx.AdamW(), clip=rlx.optim.clip_by_global_norm(1.0))
    ts = rlx.TrainingSession(language_model(), config=config, device=options.device).with_fused_optimizer()
    history = ts.fit([sample(text, rng) for _ in range(options.steps)], epochs=1)
    print(f"trained on {ts.device}: loss {history.losses[0]:.2f} -> {np.mean(history.losses[-10:]):.2f} nats a byte")


if __name__ == "__main__":
    main()
