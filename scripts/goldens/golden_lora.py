"""Write tests/golden/lora: adapters saved by PEFT, on small models of tests/golden, and the results of transformers
and PEFT with them: log-probabilities with the adapter and with it merged, and the gradients of its factors.

    python scripts/goldens/golden_lora.py                           (pip install torch transformers peft)

With three folders, the largest differences between two exports of one checkpoint, on a base model; the second export is merged.

    python scripts/goldens/golden_lora.py BASE ADAPTER MERGED
"""
import json
import pathlib
import sys
import warnings

import peft
import torch
import transformers
from safetensors.torch import save_file

warnings.filterwarnings("ignore")
SEQS = [[5, 9, 200, 17, 33, 4, 90], [1, 250, 3, 3, 12, 45, 77, 8, 101, 0, 64], [7, 77]]


def load(folder):
    return transformers.AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")


def log_probs(model, seq):
    log_p = torch.log_softmax(model(torch.tensor([seq])).logits[0], -1)
    return log_p[:-1].gather(1, torch.tensor(seq[1:])[:, None])[:, 0]


def golden(name, targets, rank, alpha, models="models"):
    folder = pathlib.Path("tests/golden/lora") / name
    torch.manual_seed(len(name))
    config = peft.LoraConfig(task_type="CAUSAL_LM", r=rank, lora_alpha=alpha, target_modules=targets, bias="none")
    model = peft.get_peft_model(load(f"tests/golden/{models}/{name}"), config)
    seqs = [[token % model.config.vocab_size for token in seq] for seq in SEQS]
    for parameter, value in model.named_parameters():
        if "lora_B" in parameter:
            torch.nn.init.normal_(value, std=0.2)
    model.save_pretrained(folder)
    (folder / "README.md").unlink()
    lines = [log_probs(model, seq) for seq in seqs]
    # Every token with its own weight, like with advantages.
    loss = sum((line * torch.cos(1.9 * torch.arange(len(line)))).sum() for line in lines)
    loss.backward()
    gradients = {key.replace(".default", ""): p.grad for key, p in model.named_parameters() if p.grad is not None}
    save_file({key: g.contiguous() for key, g in gradients.items()}, folder / "gradients.safetensors", {"format": "pt"})
    with torch.no_grad():
        merged = model.merge_and_unload()
        record = {"peft": peft.__version__, "transformers": transformers.__version__, "torch": torch.__version__, "seqs": seqs,
                  "log_probs": [line.tolist() for line in lines], "merged": [log_probs(merged, seq).tolist() for seq in seqs]}
    (folder / "golden.json").write_text(json.dumps(record, indent=1) + "\n")


def compare(base, adapter, merged):
    base, merged = load(base), load(merged)
    generator = torch.Generator().manual_seed(1)
    ids = torch.randint(0, base.config.vocab_size, (4, 12), generator=generator)
    with torch.no_grad():
        plain = base(ids).logits
        adapted = peft.PeftModel.from_pretrained(base, adapter)(ids).logits
        merged = merged(ids).logits
    print("largest difference of logits: merged and adapter", (adapted - merged).abs().max().item(),
          "adapter and base", (adapted - plain).abs().max().item(), "largest logit", adapted.abs().max().item())


if len(sys.argv) > 1:
    compare(*sys.argv[1:])
else:
    golden("llama", "all-linear", 4, 16)
    golden("gpt_neox", "all-linear", 3, 4)
    golden("gpt2", ["c_attn", "mlp.c_proj"], 2, 3)
    golden("qwen3_5_text", "all-linear", 3, 6, "models-2026")
    golden("lfm2", ["in_proj", "out_proj", "w2"], 2, 4, "models-2026")
    golden("granitemoehybrid", ["in_proj", "out_proj", "input_linear"], 2, 4, "models-2026")
