"""Print the times of transformers for what benches/hybrid.rs measures, on the same shapes (hybrid_*.json).

    python scripts/bench/bench_hybrid_torch.py                      (pip install torch transformers)
    cargo bench --bench hybrid
"""
import json
import pathlib
import time
import warnings

import torch
import transformers

warnings.filterwarnings("ignore")
torch.set_num_threads(2)
SEQUENCES, REPEATS = 32, 5


def tokens(count, length):
    return torch.tensor([[(i * 7919 + j * 104729) % 8000 for j in range(length)] for i in range(count)])


def fastest(run):
    times = []
    for _ in range(REPEATS + 1):
        start = time.perf_counter()
        run()
        times.append((time.perf_counter() - start) * 1e3)
    return min(times[1:])


def measure(path):
    settings = json.loads(path.read_text())
    model_type = settings.pop("model_type")
    config = transformers.AutoConfig.for_model(model_type, **settings)
    model = transformers.AutoModelForCausalLM.from_config(config, attn_implementation="sdpa")
    print(f"{model_type}: {sum(p.numel() for p in model.parameters())} parameters")

    def loss(ids):
        logits = model(ids).logits[:, :-1]
        return torch.nn.functional.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())

    def both(ids):
        model.zero_grad()
        loss(ids).backward()

    def generate(ids, count):
        with torch.no_grad():
            model.generate(ids, attention_mask=torch.ones_like(ids), max_new_tokens=count, min_new_tokens=count, do_sample=False,
                           pad_token_id=0)

    for length in (128, 512):
        ids = tokens(SEQUENCES * 128 // length, length)
        with torch.no_grad():
            forward = fastest(lambda: loss(ids))
        print(f"{len(ids)} x {length} tokens: forward {forward:.0f} ms, forward and backward {fastest(lambda: both(ids)):.0f} ms")
    for rows in (1, SEQUENCES):
        ids = tokens(rows, 64)
        short, long = fastest(lambda: generate(ids, 1)), fastest(lambda: generate(ids, 33))
        print(f"{rows} rows: prefill of 64 tokens {short:.1f} ms, a decode step {(long - short) / 32:.2f} ms")


for name in ("hybrid_qwen3_5.json", "hybrid_granite4.json"):
    measure(pathlib.Path(__file__).with_name(name))
