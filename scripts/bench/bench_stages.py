#!/usr/bin/env python3
"""A step of supervised fine-tuning, DPO and reward modelling compared with TRL: same weights, same rows, in turn, on the CPU.

    python scripts/bench/bench_stages.py --trainer target/release/trainer --out stages.json
    python scripts/bench/bench_stages.py --trainer … --stage sft --shape small --rounds 3

Needs trl, torch, transformers and datasets (tried with trl 1.16.0, torch 2.15.0, transformers 5.23.0). Models are of Qwen2's shape with
random weights; the tokenizer has one token for each word. It has its own folder, because transformers replaces a word tokenizer
next to a config.json of Qwen2. The time of a step is measured in the trainer's own loop; the first step of a run warms up and is left
out. Memory is the largest resident size of the whole process.
"""
import argparse
import json
import os
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SHAPES = {"small": (256, 6, 4, 2, 704), "medium": (640, 12, 10, 2, 1728)}
VOCABULARY = 50304
STAGES = ["sft", "dpo", "rm"]
LONGEST = 512
# Bins of LONGEST tokens, or pairs.
BATCH = {"sft": 8, "dpo": 4, "rm": 4}


def write_inputs(folder, shape, steps):
    """Model, tokenizer and rows; returns nothing. Rows are words, so that both sides count the same tokens."""
    hidden, layers, heads, kv_heads, inner = SHAPES[shape]
    config = dict(
        architectures=["Qwen2ForCausalLM"], model_type="qwen2", vocab_size=VOCABULARY, hidden_size=hidden, intermediate_size=inner,
        num_hidden_layers=layers, num_attention_heads=heads, num_key_value_heads=kv_heads, hidden_act="silu", rms_norm_eps=1e-6,
        max_position_embeddings=2048, rope_theta=10000.0, tie_word_embeddings=True, bos_token_id=2, eos_token_id=2, pad_token_id=0,
        initializer_range=0.02, torch_dtype="float32",
    )
    import torch
    import transformers

    torch.manual_seed(0)
    transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**config)).save_pretrained(folder / "model")
    (folder / "model/config.json").write_text(json.dumps(config))
    scored = dict(config, architectures=["Qwen2ForSequenceClassification"], id2label={"0": "LABEL_0"}, label2id={"LABEL_0": 0})
    torch.manual_seed(0)
    transformers.Qwen2ForSequenceClassification(transformers.Qwen2Config(**scored)).save_pretrained(folder / "scored")
    (folder / "scored/config.json").write_text(json.dumps(scored))
    words = ["<pad>", "<unk>", "</s>"] + [f"w{i}" for i in range(3, VOCABULARY)]
    special = [dict(id=i, content=words[i], special=True, single_word=False, lstrip=False, rstrip=False, normalized=False) for i in range(3)]
    tokenizer = dict(
        version="1.0", truncation=None, padding=None, added_tokens=special, normalizer=None, post_processor=None, decoder=None,
        pre_tokenizer={"type": "WhitespaceSplit"},
        model={"type": "WordLevel", "vocab": {word: i for i, word in enumerate(words)}, "unk_token": "<unk>"},
    )
    (folder / "tokenizer").mkdir()
    (folder / "tokenizer/tokenizer.json").write_text(json.dumps(tokenizer))
    names = dict(tokenizer_class="PreTrainedTokenizerFast", eos_token="</s>", pad_token="<pad>", unk_token="<unk>")
    (folder / "tokenizer/tokenizer_config.json").write_text(json.dumps(names))
    draw = random.Random(1)
    text = lambda count: " ".join(f"w{draw.randrange(3, VOCABULARY)}" for _ in range(count))
    rows = {
        "sft": lambda: dict(prompt=text(draw.randrange(16, 129)) + " ", completion=text(draw.randrange(16, LONGEST - 140))),
        "dpo": lambda: dict(prompt=text(draw.randrange(64, 193)) + " ", chosen=text(draw.randrange(32, 257)), rejected=text(draw.randrange(32, 257))),
    }
    rows["rm"] = rows["dpo"]
    count = {"sft": 24 * steps, "dpo": BATCH["dpo"] * steps, "rm": BATCH["rm"] * steps}
    for stage, row in rows.items():
        (folder / f"{stage}.jsonl").write_text("".join(json.dumps(row()) + "\n" for _ in range(count[stage])))


def run_trl(stage, folder, steps, batch, threads):
    """One run of TRL in this process: seconds of each step."""
    import datasets
    import torch
    import transformers
    import trl

    torch.set_num_threads(threads)
    tokenizer = transformers.PreTrainedTokenizerFast.from_pretrained(folder / "tokenizer")
    rows = datasets.load_dataset("json", data_files=str(folder / f"{stage}.jsonl"), split="train", cache_dir=str(folder / "cache"))
    common = dict(
        output_dir=str(folder / "trl"), max_steps=steps, per_device_train_batch_size=batch, learning_rate=1e-5, use_cpu=True, bf16=False,
        gradient_checkpointing=False, report_to="none", save_strategy="no", logging_steps=1, max_length=LONGEST, disable_tqdm=True,
    )
    seconds, logged = [], []

    class Clock(transformers.TrainerCallback):
        def on_step_begin(self, *_, **__):
            self.start = time.perf_counter()

        def on_step_end(self, *_, **__):
            seconds.append(time.perf_counter() - self.start)

        def on_log(self, args, state, control, logs=None, **_):
            logged.append(logs or {})

    start = time.perf_counter()
    load = lambda kind, name: kind.from_pretrained(folder / name, dtype=torch.float32, attn_implementation="sdpa")
    if stage == "sft":
        config = trl.SFTConfig(packing=True, **common)
        trainer = trl.SFTTrainer(load(transformers.AutoModelForCausalLM, "model"), config, train_dataset=rows, processing_class=tokenizer, callbacks=[Clock()])
    elif stage == "dpo":
        config = trl.DPOConfig(precompute_ref_log_probs=True, beta=0.1, **common)
        trainer = trl.DPOTrainer(load(transformers.AutoModelForCausalLM, "model"), args=config, train_dataset=rows, processing_class=tokenizer, callbacks=[Clock()])
    else:
        config = trl.RewardConfig(**common)
        trainer = trl.RewardTrainer(load(transformers.AutoModelForSequenceClassification, "scored"), config, train_dataset=rows, processing_class=tokenizer, callbacks=[Clock()])
    prepared = time.perf_counter() - start
    trainer.train()
    tokens = [log["num_tokens"] for log in logged if "num_tokens" in log]
    tokens = [b - a for a, b in zip([0, *tokens], tokens)]
    return dict(seconds=seconds, tokens=tokens, before=prepared, loss=[log["loss"] for log in logged if "loss" in log])


def run_ours(trainer, stage, folder, steps, batch, threads):
    """One run of the program: seconds of each step."""
    run = folder / "ours"
    subprocess.run(["rm", "-rf", run], check=True)
    settings = [
        f"model.path={folder / ('scored' if stage == 'rm' else 'model')}", f"model.tokenizer_path={folder / 'tokenizer'}",
        f"data.train_files={folder / (stage + '.jsonl')}", "data.val_files=null", f"data.train_batch_size={batch}",
        f"data.micro_batch_size_per_gpu={batch}", f"data.max_length={LONGEST}", "data.truncation=right", "optim.lr=1e-5",
        f"trainer.total_training_steps={steps}", "trainer.save_freq=null", "trainer.logger=[file]", f"trainer.default_local_dir={run}",
        "checkpoint.save_contents=[extra]",
    ]
    settings += ["data.completion_key=completion", "data.packing=bfd"] if stage == "sft" else []
    env = dict(os.environ, RAYON_NUM_THREADS=str(threads))
    start = time.perf_counter()
    process = subprocess.Popen([trainer, stage, "--config", f"{stage}_trainer.yaml", *settings], env=env, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"trainer {stage} failed")
    rows = [json.loads(line)["data"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    column = lambda name: [row[name] for row in rows]
    seconds = column("timing_s/step")
    return dict(
        seconds=seconds, tokens=column("train/global_tokens"), loss=column("train/loss"), peak_mib=usage.ru_maxrss / 1024,
        before=time.perf_counter() - start - sum(seconds),
    )


def beside(args, stage, shape):
    """Both sides in turn, several rounds: medians over all measured steps."""
    batch = BATCH[stage]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_inputs(folder, shape, args.steps)
        found = {"trl": [], "ours": []}
        for _ in range(args.rounds):
            found["ours"].append(run_ours(args.trainer, stage, folder, args.steps, batch, args.threads))
            command = [sys.executable, __file__, "--trl", str(folder), "--stage", stage, "--steps", str(args.steps), "--threads", str(args.threads), "--batch", str(batch)]
            output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            found["trl"].append(json.loads(output.splitlines()[-1]))
    seconds = {side: statistics.median(second for run in runs for second in run["seconds"][1:]) for side, runs in found.items()}
    memory = {side: statistics.median(run["peak_mib"] for run in runs) for side, runs in found.items()}
    per_token = {
        side: statistics.median(second / token for run in runs for second, token in zip(run["seconds"][1:], run["tokens"][1:]) if token)
        for side, runs in found.items() if all(run["tokens"] for run in runs)
    }
    row = dict(stage=stage, shape=shape, seconds=seconds, memory_mib=memory, faster=seconds["trl"] / seconds["ours"], memory=memory["ours"] / memory["trl"], runs=found)
    if len(per_token) == 2:
        row["faster_per_token"] = per_token["trl"] / per_token["ours"]
    print(f"{stage:4} {shape:7} ours {seconds['ours']:.3f} s, TRL {seconds['trl']:.3f} s: {row['faster']:.2f} times as fast"
          f" ({row.get('faster_per_token', float('nan')):.2f} per token); memory {memory['ours']:.0f} of {memory['trl']:.0f} MiB: {row['memory']:.2f}", flush=True)
    return row


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", help="the program")
    parser.add_argument("--stage", choices=STAGES, help="one stage; all by default")
    parser.add_argument("--shape", choices=SHAPES, help="one shape; all by default")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=3, help="of a run; the first is left out")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--out", help="JSON file of all numbers")
    parser.add_argument("--trl", help=argparse.SUPPRESS)
    parser.add_argument("--batch", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.trl:
        result = run_trl(args.stage, Path(args.trl), args.steps, args.batch, args.threads)
        print(json.dumps(dict(result, peak_mib=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)))
        return
    rows = [beside(args, stage, shape) for shape in SHAPES if args.shape in (None, shape) for stage in STAGES if args.stage in (None, stage)]
    if args.out:
        Path(args.out).write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
