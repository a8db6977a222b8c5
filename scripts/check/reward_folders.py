"""Trains reward models with `trainer rm`, and lets transformers score the same texts with the saved folders.

    python scripts/check/reward_folders.py target/release/trainer [--models tests/golden/models] [--goldens tests/golden/offline/e2e]

Needs torch and transformers, and peft for the adapters. For every model: two steps on the golden's pairs, then the scores of
`trainer serve-rm` compared with those of `AutoModelForSequenceClassification`, for texts padded together by the saved tokenizer
and one by one; the same for an adapter; and the labels of a process reward model compared with those of
`AutoModelForTokenClassification`.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import torch
import transformers
from transformers import (
    AutoModelForSequenceClassification,
    AutoModelForTokenClassification,
    PreTrainedTokenizerFast,
)

TOLERANCE = 1e-5


def train(args, at, *settings):
    command = [args.trainer, "rm", "--config", "rm_trainer.yaml", "trainer.logger=[file]", f"trainer.default_local_dir={at}"]
    command += ["trainer.total_training_steps=2", "data.val_files=null", "data.train_batch_size=4", "optim.lr=1e-3", *settings]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stderr}")
    return Path(at) / "global_step_2"


def serve(args, folder, texts):
    command = [args.trainer, "serve-rm", "--model", str(folder), "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    try:
        url = server.stdout.readline().split()[-1]
        request = urllib.request.Request(url, json.dumps({"query": texts}).encode(), {"Content-Type": "application/json"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)["rewards"]
    finally:
        server.terminate()
        server.wait()


def scores(model, tokenizer, texts):
    """The scores of texts padded together, and one by one."""
    with torch.no_grad():
        batch = tokenizer(texts, padding=True, add_special_tokens=False, return_tensors="pt")
        together = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).logits[:, 0].tolist()
        alone = [model(input_ids=torch.tensor([ids])).logits[0, 0].item() for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]
    return together, alone


def difference(ours, theirs):
    return max(abs(a - b) / max(1.0, abs(b)) for a, b in zip(ours, theirs, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer")
    parser.add_argument("--models", type=Path, default=Path("tests/golden/models"))
    parser.add_argument("--goldens", type=Path, default=Path("tests/golden/offline/e2e"))
    args = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    # With the end token: the score is read after it.
    rows = json.loads((args.goldens / "rm_llama_reward_preference.json").read_text())["rows"]
    texts = [row["prompt"] + row[side] + "</s>" for row in rows for side in ("chosen", "rejected")]
    worst, missing = 0.0, []
    with tempfile.TemporaryDirectory() as temporary:
        at = Path(temporary)
        pairs = at / "pairs.jsonl"
        pairs.write_text("".join(json.dumps(row) + "\n" for row in rows))
        steps = at / "steps.jsonl"
        lines = [{"prompt": row["prompt"], "completions": [row["chosen"], row["rejected"]], "labels": [True, False]} for row in rows]
        steps.write_text("".join(json.dumps(line) + "\n" for line in lines))
        tokenizer_folder = args.goldens / "tokenizer"
        for model in sorted(folder for folder in args.models.iterdir() if "critic" not in folder.name):
            shared = [f"model.path={model}", f"model.tokenizer_path={tokenizer_folder}"]
            saved = train(args, at / model.name, *shared, f"data.train_files={pairs}") / "huggingface"
            tokenizer = PreTrainedTokenizerFast.from_pretrained(saved)
            loaded, info = AutoModelForSequenceClassification.from_pretrained(saved, dtype=torch.float32, output_loading_info=True)
            missing += [f"{model.name}: {name}" for name in info["missing_keys"]]
            assert loaded.config.num_labels == 1 and loaded.config.pad_token_id == tokenizer.pad_token_id, model.name
            ours = serve(args, saved, texts)
            found = [difference(ours, theirs) for theirs in scores(loaded.eval(), tokenizer, texts)]
            line = f"{model.name:18} {type(loaded).__name__:36} padded {found[0]:.1e}  one by one {found[1]:.1e}"
            worst = max(worst, *found)
            if "reward" not in model.name:
                judge = train(args, at / f"{model.name}-steps", *shared, f"data.train_files={steps}", "data.truncation=right",
                              "algorithm.loss_type=cross_entropy", "data.step_separator=' t99'") / "huggingface"
                loaded, info = AutoModelForTokenClassification.from_pretrained(judge, dtype=torch.float32, output_loading_info=True)
                missing += [f"{model.name}, steps: {name}" for name in info["missing_keys"]]
                line += f"  {type(loaded).__name__}, {loaded.config.num_labels} labels"
            try:
                import peft
            except ImportError:
                peft = None
            if peft and "reward" not in model.name:
                run = train(args, at / f"{model.name}-lora", *shared, f"data.train_files={pairs}", "model.lora_rank=4",
                            "checkpoint.save_contents=[model,hf_model,optimizer,extra]")
                base = AutoModelForSequenceClassification.from_pretrained(model, num_labels=1, dtype=torch.float32)
                base.config.pad_token_id = tokenizer.pad_token_id
                adapted = peft.PeftModel.from_pretrained(base, run / "lora_adapter").eval()
                merged = serve(args, run / "huggingface", texts)
                found = difference(merged, scores(adapted, tokenizer, texts)[1])
                worst = max(worst, found)
                line += f"  adapter {found:.1e}"
            print(line, flush=True)
    print(f"largest difference {worst:.1e}, missing tensors: {missing or 'none'}")
    sys.exit(worst > TOLERANCE or bool(missing))


main()
