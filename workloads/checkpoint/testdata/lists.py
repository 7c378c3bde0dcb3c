#!/usr/bin/env python3
"""File lists of MLPerf Storage's checkpoints, worked out a second time for models_test.go.

Written from the formulas alone and in another way than the Go code: tensors are listed one by one,
and divided at the end. It prints a line per model and number of accelerators: files, bytes and the
SHA-256 of the list, lines "name TAB bytes LF" sorted bytewise.

    python3 workloads/checkpoint/testdata/lists.py > workloads/checkpoint/testdata/lists.txt
"""
import hashlib

VOCABULARY = 128256
MODELS = {
    "8b": dict(h=4096, f=14336, a=32, k=8, layers=32, zero=3, tp=1, pp=1, dp=8),
    "70b": dict(h=8192, f=28672, a=128, k=8, layers=80, zero=3, tp=8, pp=1, dp=8),
    "405b": dict(h=16384, f=53248, a=128, k=8, layers=126, zero=1, tp=8, pp=32, dp=2),
    "1t": dict(h=25872, f=98304, a=192, k=32, layers=128, zero=1, tp=8, pp=64, dp=2),
}


def tensors(m, layer):
    """Shape and whether tensor parallelism cuts it, for each tensor of a layer."""
    h, f, d = m["h"], m["f"], m["h"] // m["a"] * m["k"]
    if layer in (0, m["layers"] + 1):
        return [(h * VOCABULARY, True)]
    if layer == m["layers"] + 2:
        return [(h, False)]
    return [(h, False), (h * (h + 2 * d), True), (h * h, True), (h, False), (h * 2 * f, True),
            (h * f, True)]


def layer_bytes(m, layer, shards):
    return sum(n // (m["tp"] if cut else 1) // shards * 2 for n, cut in tensors(m, layer))


def parameters(m):
    h, f, d = m["h"], m["f"], m["h"] // m["a"] * m["k"]
    one = h + h * (h + 2 * d) + h * h + h + 2 * f * h + f * h
    return VOCABULARY * h + m["layers"] * one + h + h * VOCABULARY


def stage(m, pp):
    """Layers of a pipeline stage: dealt out like cards, the first ones get one more."""
    owner = []
    for s in range(m["pp"]):
        owner += [s] * (m["layers"] // m["pp"] + (s < m["layers"] % m["pp"]))
    mine = [i + 1 for i, s in enumerate(owner) if s == pp]
    if pp == 0:
        mine = [0] + mine
    if pp == m["pp"] - 1:
        mine += [m["layers"] + 1, m["layers"] + 2]
    return mine


def files(m, rank, dp_size):
    grid = m["tp"] * m["pp"]
    tp, pp, dp, mp = rank % m["tp"], rank // m["tp"] % m["pp"], rank // grid, rank % grid
    del tp
    if m["zero"] == 3:
        yield (f"zero_pp_rank_{dp}_mp_rank_{mp}_model_states.pt",
               sum(layer_bytes(m, i, dp_size) for i in stage(m, pp)))
    elif dp == 0:
        for i in stage(m, pp):
            yield f"layer_{i}-model_{mp}_model_states.pt", layer_bytes(m, i, 1)
    yield (f"zero_pp_rank_{dp}_mp_rank_{mp}_optim_states.pt",
           3 * 4 * (parameters(m) // (dp_size * grid) + 5 * m["h"]))


for key, m in MODELS.items():
    grid = m["tp"] * m["pp"]
    own = grid * m["dp"]
    for ranks in sorted({min(8, own), own, 2 * own}):
        dp_size = max(m["dp"], ranks // grid)
        for scale in (1, 64):
            lines, total = [], 0
            for r in range(ranks):
                for name, size in files(m, r, dp_size):
                    if scale > 1:
                        size = -(-(-(-size // scale)) // 4096) * 4096
                    lines.append(f"{name}\t{size}\n")
                    total += size
            digest = hashlib.sha256("".join(sorted(lines)).encode()).hexdigest()
            print(key, ranks, scale, len(lines), total, digest)
