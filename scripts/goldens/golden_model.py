"""Write golden.json into a Hugging Face folder: the results of transformers with its model, in the layout that
tests/model/transformers.rs reads. Checks any checkpoint of ours against transformers:

    trainer export CHECKPOINT --output check/models/mine
    python scripts/goldens/golden_model.py check/models/mine        (pip install torch transformers)
    BURNISH_GOLDENS=check cargo test --release --test model transformers

With `float64` as a second argument, all of the model computes in float64, also where its source says float32: gradients of
the gates of a delta net are small sums of large terms, which torch's float32 gives to four digits only. Further arguments
are the lengths of the sequences.
"""
import inspect
import json
import sys
import warnings

import torch
import transformers

warnings.filterwarnings("ignore")
folder = sys.argv[1]
dtype = torch.float64 if sys.argv[2:3] == ["float64"] else torch.float32
lengths = [int(length) for length in sys.argv[3:]] or [5, 11, 17]
kind = transformers.AutoModelForCausalLM
if dtype == torch.float64:
    kind = type(kind.from_pretrained(folder))
    module = sys.modules[kind.__module__]
    source = inspect.getsource(module).replace("torch.float32", "torch.float64").replace(".float()", ".double()")
    exec(compile(source.replace("dtype=torch.float)", "dtype=torch.float64)"), module.__file__, "exec"), module.__dict__)
    kind = getattr(module, kind.__name__)
model = kind.from_pretrained(folder, dtype=dtype, attn_implementation="eager", experts_implementation="eager")
routers = [module for module in model.modules() if type(module).__name__.endswith("TopKRouter")]
chosen = []
for router in routers:
    router.register_forward_hook(lambda _, inputs, output: chosen.append(output[2].tolist()))
vocab = model.config.vocab_size
generator = torch.Generator().manual_seed(20261121)
seqs = [torch.randint(0, vocab, (n,), generator=generator).tolist() for n in lengths]

sequences, experts = [], []
for ids in seqs:
    x = torch.tensor([ids])
    with torch.no_grad():
        chosen.clear()
        logits = model(x).logits[0]
        experts.append(list(chosen))
        log_p = torch.log_softmax(logits, -1)
        cur = x
        for _ in range(12):
            cur = torch.cat([cur, model(cur).logits[:, -1].argmax(-1, keepdim=True)], 1)
    sequences.append({
        "logits_first": logits[0].tolist(),
        "logits_last": logits[-1].tolist(),
        "token_logprobs": log_p[:-1].gather(1, x[0, 1:, None])[:, 0].tolist(),
        "entropy": (-(log_p.exp() * log_p).sum(-1)).tolist(),
        "greedy12": cur[0, len(ids):].tolist(),
    })


def loss():
    nll = [torch.nn.functional.cross_entropy(model(torch.tensor([s])).logits[0, :-1], torch.tensor(s[1:]), reduction="sum")
           for s in seqs]
    return sum(nll) / sum(len(s) - 1 for s in seqs)


step = {"lr": 1e-3, "betas": [0.9, 0.999], "eps": 1e-8, "weight_decay": 0.01, "clip_grad_norm": 1.0}
value = loss()
value.backward()
named = dict(model.named_parameters())
norms = {name: p.grad.norm().item() for name, p in named.items()}
total = torch.nn.utils.clip_grad_norm_(model.parameters(), step["clip_grad_norm"]).item()
optimizer = torch.optim.AdamW(model.parameters(), lr=step["lr"], betas=tuple(step["betas"]), eps=step["eps"],
                              weight_decay=step["weight_decay"])
optimizer.step()
with torch.no_grad():
    step["loss_after"] = loss().item()
step["param_abs_sum"] = {name: p.abs().sum(dtype=torch.float64).item() for name, p in named.items()}
golden = {"transformers": transformers.__version__, "torch": torch.__version__, "seqs": seqs, "sequences": sequences,
          "loss": value.item(), "grad_norm": total, "grad_norms": norms, "adamw_step": step}
if routers:
    golden["experts"] = experts  # [sequence][mixture][token][k], in the router's order
with open(f"{folder}/golden.json", "w") as f:
    json.dump(golden, f)
print(f"{folder}/golden.json: transformers {transformers.__version__}, loss {value.item():.6f}")
