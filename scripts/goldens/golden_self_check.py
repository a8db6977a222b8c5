"""Results of the operations that `trainer self-check` computes, in float64 with NumPy.

    python scripts/goldens/golden_self_check.py > src/cli/self_check/goldens.json

Inputs are waves in float32. A result is folded to at most 61 sums, as `fold` in src/cli/self_check/kernels.rs does.
"""

import json

import numpy as np

PARTS = 61


def wave(count, phase):
    return np.sin(0.37 * np.arange(count) + phase).astype(np.float32).astype(np.float64)


def fold(values):
    values = np.asarray(values, dtype=np.float64).ravel()
    sums = np.zeros(min(PARTS, len(values)))
    for index, value in enumerate(values):
        sums[index % PARTS] += value * (1 + index % 3)
    return [float(f"{value:.9g}") for value in sums]


def matmul():
    x, w, d = wave(33 * 70, 0.1).reshape(33, 70), wave(19 * 70, 0.2).reshape(19, 70), wave(33 * 19, 0.3).reshape(33, 19)
    return {"output": x @ w.T, "gradient of x": d @ w, "gradient of w": d.T @ x}


def rms_norm():
    x, w, d = wave(5 * 83, 0.4).reshape(5, 83), wave(83, 0.5), wave(5 * 83, 0.6).reshape(5, 83)
    scale = 1 / np.sqrt((x * x).mean(1, keepdims=True) + 1e-5)
    dn = d * w
    dx = scale * (dn - x * scale**2 * (dn * x).mean(1, keepdims=True))
    return {"output": x * scale * w, "gradient of x": dx, "gradient of w": (d * x * scale).sum(0)}


def swiglu():
    gate, up, d = (4 * wave(3 * 129, phase) for phase in (0.7, 0.8, 0.9))
    s = 1 / (1 + np.exp(-gate))
    return {"output": gate * s * up, "gradient of gate": d * up * (s + gate * s * (1 - s)), "gradient of up": d * gate * s}


def attention():
    """A prompt of 5 tokens with responses of 4 and 3 tokens, and a text of 6 tokens."""
    heads, kv, size, rows = 4, 2, 16, 18
    q, d = (wave(rows * heads * size, phase).reshape(rows, heads, size) for phase in (1.0, 1.3))
    k, v = (wave(rows * kv * size, phase).reshape(rows, kv, size) for phase in (1.1, 1.2))
    seen = np.zeros((rows, rows), bool)
    for stem, own in ((range(0), range(5)), (range(5), range(5, 9)), (range(5), range(9, 12)), (range(0), range(12, 18))):
        for row in own:
            seen[row, list(stem) + list(range(own.start, row + 1))] = True
    out, dq, dk, dv = np.zeros_like(q), np.zeros_like(q), np.zeros_like(k), np.zeros_like(v)
    for head in range(heads):
        own = head // (heads // kv)
        scores = np.where(seen, q[:, head] @ k[:, own].T / 4, -np.inf)
        p = np.exp(scores - scores.max(1, keepdims=True))
        p /= p.sum(1, keepdims=True)
        out[:, head] = p @ v[:, own]
        dv[:, own] += p.T @ d[:, head]
        dp = d[:, head] @ v[:, own].T
        ds = p * (dp - (p * dp).sum(1, keepdims=True)) / 4
        dq[:, head] = ds @ k[:, own]
        dk[:, own] += ds.T @ q[:, head]
    return {"output": out, "gradient of q": dq, "gradient of k": dk, "gradient of v": dv}


def log_probability():
    tokens, width, words = 37, 24, 301
    x, w = wave(tokens * width, 1.4).reshape(tokens, width), wave(words * width, 1.5).reshape(words, width)
    targets = np.arange(tokens) * 7919 % words
    logits = x @ w.T
    m = logits.max(1, keepdims=True)
    logp = logits - m - np.log(np.exp(logits - m).sum(1, keepdims=True))
    p = np.exp(logp)
    entropy = -(p * logp).sum(1)
    of_log_prob, of_entropy = wave(tokens, 1.6), wave(tokens, 1.7)
    d = -p * of_log_prob[:, None] - p * (logp + entropy[:, None]) * of_entropy[:, None]
    d[np.arange(tokens), targets] += of_log_prob
    return {
        "log-probability": logp[np.arange(tokens), targets],
        "entropy": entropy,
        "gradient of x": d @ w,
        "gradient of w": d.T @ x,
    }


def adamw():
    w, m, v = wave(130, 1.8), 0, 0
    lr, beta1, beta2, eps, decay = 1e-2, 0.9, 0.999, 1e-8, 0.1
    for step in (1, 2):
        g = wave(130, 1.8 + step)
        w = w * (1 - lr * decay)
        m = beta1 * m + (1 - beta1) * g
        v = beta2 * v + (1 - beta2) * g * g
        w = w - lr / (1 - beta1**step) * m / (np.sqrt(v) / np.sqrt(1 - beta2**step) + eps)
    return {"weights": w}


def rloo():
    """Two prompts with four and three responses of two tokens; a response's score is at its last token."""
    advantages, first = [], 0
    scores = wave(7, 2.1)
    for count in (4, 3):
        group = scores[first : first + count]
        advantages += [s - (group.sum() - s) / (count - 1) for s in group for _ in range(2)]
        first += count
    return {"advantages": advantages}


operations = {
    "matmul": matmul,
    "RMS norm": rms_norm,
    "SwiGLU": swiglu,
    "attention": attention,
    "log-probability": log_probability,
    "AdamW": adamw,
    "RLOO": rloo,
}
lines = []
for name, operation in operations.items():
    parts = [f"    {json.dumps(part)}: {json.dumps(fold(values))}" for part, values in operation().items()]
    lines.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(parts) + "\n  }")
print("{\n" + ",\n".join(lines) + "\n}")
