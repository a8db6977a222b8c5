"""PyTorch's side of `cargo bench --bench ops`: milliseconds of a forward, and of a forward and backward pass, 2 threads, f32."""

import time

import torch
import torch.nn.functional as F

torch.set_num_threads(2)
torch.manual_seed(0)


def least(f, repeats=15):
    f()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        times.append((time.perf_counter() - start) * 1e3)
    return min(times)


def row(name, shapes, f):
    x = [torch.randn(shape, requires_grad=True) for shape in shapes]
    c = torch.randn_like(f(*x))

    def both():
        for t in x:
            t.grad = None
        f(*x).backward(c)

    with torch.no_grad():
        forward = least(lambda: f(*x))
    print(f"{name} | {forward:.2f} {least(both):.2f}", flush=True)


def rope(cos, sin):
    def f(x):
        x1, x2 = x.chunk(2, -1)
        return x * cos + torch.cat((-x2, x1), -1) * sin

    return f


def attention(q, k, v):
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


def head(h, n=2048, v=50304):
    hidden, w = torch.randn(n, h), torch.randn(v, h) * 0.01
    targets = torch.full((n, 1), 7)

    def stats(hidden, w):
        logits = F.linear(hidden, w)
        lp = logits.log_softmax(-1)
        return lp.gather(1, targets).sum() - 0.1 * (lp.exp() * lp).sum()

    hidden.requires_grad_(), w.requires_grad_()

    def both():
        hidden.grad = w.grad = None
        stats(hidden, w).backward()

    with torch.no_grad():
        forward = least(lambda: stats(hidden, w), 3)
    print(f"head {h} | {forward:.0f} {least(both, 3):.0f}", flush=True)


def adamw(count):
    w = [torch.randn(count // 16, requires_grad=True) for _ in range(16)]
    for p in w:
        p.grad = torch.randn_like(p)
    optimizer = torch.optim.AdamW(w, lr=1e-4)
    clip = least(lambda: torch.nn.utils.clip_grad_norm_(w, 1.0))
    print(f"adamw {count // 10**6} M | {least(optimizer.step):.1f}, clipping {clip:.1f}", flush=True)


n, h, m = 2048, 640, 1728
row("glu silu", [(n, m)] * 2, lambda g, u: F.silu(g) * u)
acts = {"Silu": F.silu, "Gelu": F.gelu, "GeluTanh": lambda x: F.gelu(x, approximate="tanh"), "Relu": F.relu}
for name, f in acts.items():
    row(f"act {name}", [(n, m)], f)
row("rms_norm", [(n, h), (h,)], lambda x, w: F.rms_norm(x, (h,), w, 1e-5))
row("layer_norm", [(n, h), (h,), (h,)], lambda x, w, b: F.layer_norm(x, (h,), w, b, 1e-5))
angles = torch.randn(n, 1, 64)
row("rope", [(n, 10, 64)], rope(angles.cos(), angles.sin()))
row("linear", [(n, h), (m, h), (m,)], F.linear)
for batch, seq in [(8, 256), (32, 64)]:
    row(f"attention {batch}x{seq}", [(batch, heads, seq, 64) for heads in (10, 2, 2)], attention)
row("attention 16x192 (the tree's, stems repeated)", [(16, heads, 192, 64) for heads in (10, 2, 2)], attention)
adamw(17_000_000)
adamw(84_000_000)
for width in (256, 640):
    head(width)
