#!/usr/bin/env python3
"""Rows per second of tokenization and packing for supervised fine-tuning, compared with TRL's pipeline on `datasets`: same rows,
in turn.

    python scripts/bench/bench_rows.py --trainer target/release/trainer --tokenizer FOLDER --out rows.json

FOLDER holds a tokenizer.json. Needs trl and datasets (tried with trl 1.16.0). Rows are a prompt and a completion of 10 to 300 words of
this project's pages. Ours is the time of `trainer sft --dry-run` over all rows less that over a single row, so that neither start is
counted; TRL's is the time of SFTTrainer's own preparation, once in one process, which is its default, and once in one for each core.
"""
import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

LONGEST = 1024
MODES = {"plain": "null", "packed": "bfd"}
ROOT = Path(__file__).resolve().parents[2]


def write_rows(file, count):
    """Writes rows of a prompt and a completion; `file`.one has only the first."""
    draw = random.Random(1)
    words = " ".join(page.read_text() for page in sorted((ROOT / "docs").glob("*.md"))).split()
    lines = []
    for _ in range(count):
        length, start = draw.randint(10, 300), draw.randrange(len(words) - 400)
        prompt, completion = words[start:start + length // 2], words[start + length // 2:start + length]
        lines.append(json.dumps(dict(prompt=" ".join(prompt), completion=" " + " ".join(completion))) + "\n")
    file.write_text("".join(lines))
    file.with_suffix(".one.jsonl").write_text(lines[0])


def run_trl(rows, tokenizer, mode, processes):
    """Seconds of TRL's preparation."""
    import datasets
    from transformers import PreTrainedTokenizerFast
    from trl import SFTConfig, SFTTrainer

    class Prepared(SFTTrainer):
        """The trainer without a model: its preparation reads these four fields alone."""

        def __init__(self, processing_class):
            self._tokenizer = self.processing_class = processing_class
            self.chat_template, self.completion_only_loss = None, True

    datasets.disable_caching()
    datasets.disable_progress_bars()
    tokenizer = PreTrainedTokenizerFast(tokenizer_file=f"{tokenizer}/tokenizer.json", eos_token="<|endoftext|>", pad_token="<|endoftext|>")
    with tempfile.TemporaryDirectory() as cache:
        loaded = datasets.load_dataset("json", data_files=rows, split="train", cache_dir=cache)
        packing = mode == "packed"
        config = SFTConfig(output_dir=cache, max_length=LONGEST, packing=packing, use_cpu=True, bf16=False, dataset_num_proc=processes, shuffle_dataset=False)
        start = time.perf_counter()
        prepared = Prepared(tokenizer)._prepare_dataset(loaded, tokenizer, config, packing, None, "train")
        return dict(seconds=time.perf_counter() - start, units=len(prepared))


def run_ours(trainer, rows, tokenizer, mode):
    """Seconds of a dry run, and its number of examples."""
    with tempfile.TemporaryDirectory() as folder:
        # A dry run only reads the model's config.json.
        config = json.loads((ROOT / "data/arithmetic/model/config.json").read_text())
        config.update(vocab_size=1 << 18, max_position_embeddings=LONGEST)
        Path(folder, "config.json").write_text(json.dumps(config))
        settings = [
            f"model.path={folder}", f"model.tokenizer_path={tokenizer}", "model.init=random", f"data.train_files={rows}", "data.val_files=null",
            "data.completion_key=completion", f"data.max_length={LONGEST}", "data.truncation=right", f"data.packing={MODES[mode]}",
            "data.train_batch_size=1", f"trainer.default_local_dir={folder}/run",
        ]
        start = time.perf_counter()
        output = subprocess.run([trainer, "sft", "--dry-run=plan", "--config", "sft_trainer.yaml", *settings], check=True, stdout=subprocess.PIPE, text=True)
        return dict(seconds=time.perf_counter() - start, report=output.stdout)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", help="the program")
    parser.add_argument("--tokenizer", required=True, help="folder with tokenizer.json")
    parser.add_argument("--rows", type=int, default=20000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--out", help="JSON file of all numbers")
    parser.add_argument("--trl", help=argparse.SUPPRESS)
    parser.add_argument("--mode", choices=MODES, help=argparse.SUPPRESS)
    parser.add_argument("--processes", type=int, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.trl:
        print(json.dumps(run_trl(args.trl, args.tokenizer, args.mode, args.processes)))
        return
    results = []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.jsonl"
        write_rows(file, args.rows)
        for mode in MODES:
            found = {"ours": [], "trl": [], "trl, all cores": []}
            for _ in range(args.rounds):
                all_rows, one = (run_ours(args.trainer, path, args.tokenizer, mode) for path in (file, file.with_suffix(".one.jsonl")))
                found["ours"].append(all_rows["seconds"] - one["seconds"])
                for side, processes in [("trl", None), ("trl, all cores", os.cpu_count())]:
                    command = [sys.executable, __file__, "--tokenizer", args.tokenizer, "--trl", str(file), "--mode", mode]
                    command += [] if processes is None else ["--processes", str(processes)]
                    output = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
                    found[side].append(json.loads(output.splitlines()[-1])["seconds"])
            speed = {side: args.rows / statistics.median(seconds) for side, seconds in found.items()}
            results.append(dict(mode=mode, rows=args.rows, rows_per_second=speed, seconds=found))
            print(f"{mode:7} " + ", ".join(f"{side} {rate:.0f} rows/s" for side, rate in speed.items())
                  + f": {speed['ours'] / speed['trl']:.1f} times as fast, {speed['ours'] / speed['trl, all cores']:.1f} beside all cores", flush=True)
    if args.out:
        Path(args.out).write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
