"""The best matmul rate on this machine, as JSON: `matmul.py '{"device": "cpu", "dtype": "float32", "threads": 2, "seconds": 2}'`.

Square matrices of several sizes, in turn; a size counts with its fastest matmul. Uses torch if it is installed, else numpy.
"""
import json
import os
import sys
import time

SIZES = {"cpu": (1024, 1536, 2048), "cuda": (2048, 4096, 8192)}


def main(device="cpu", dtype="float32", threads=0, seconds=2.0):
    if threads:
        for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            os.environ[name] = str(threads)
    try:
        import torch
    except ImportError:
        torch = None
    if torch is not None:
        if threads:
            torch.set_num_threads(threads)
        make = lambda n: torch.randn(n, n, device=device).to(getattr(torch, dtype))  # noqa: E731
        wait = torch.cuda.synchronize if device == "cuda" else lambda: None
        product = lambda a, b, out: torch.mm(a, b, out=out)  # noqa: E731
    elif device == "cpu" and dtype == "float32":
        import numpy
        make = lambda n: numpy.random.rand(n, n).astype("float32")  # noqa: E731
        wait, product = (lambda: None), (lambda a, b, out: numpy.matmul(a, b, out=out))
    else:
        sys.exit(f"{dtype} on {device} needs torch")
    best = {}
    inputs = {n: (make(n), make(n), make(n)) for n in SIZES[device]}
    end = time.perf_counter() + seconds
    while not best or time.perf_counter() < end:
        for n, (a, b, out) in inputs.items():
            wait()
            start = time.perf_counter()
            product(a, b, out)
            wait()
            rate = 2 * n**3 / (time.perf_counter() - start)
            best[n] = max(best.get(n, 0), rate)
    print(json.dumps({"flop_per_s": max(best.values()), "by_size": best, "library": "torch" if torch else "numpy"}))


if __name__ == "__main__":
    main(**json.loads(sys.argv[1] if len(sys.argv) > 1 else "{}"))
