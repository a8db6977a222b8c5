#!/usr/bin/env python3
"""How close the forecast of `--dry-run` is: its step and memory against those of a run with the same settings.

    python scripts/bench/bench_dry_run.py --trainer target/release/trainer --threads 2 --out FOLDER

Writes bench-dry-run.json and bench-dry-run.md. Of a run, the median of all steps after the first counts.
"""
import argparse
import os
import pathlib
import re
import tempfile
import time

from benchlib import ours, report
from benchlib.process import Run

# Name, command, recipe, and further settings.
RECIPES = [
    ("RLOO", "", "arithmetic/first.yaml", []),
    ("RLOO, longer responses", "", "arithmetic/first.yaml",
     ["data.max_response_length=44", "actor_rollout_ref.rollout.ignore_eos=true", "data.train_batch_size=16",
      "actor_rollout_ref.actor.ppo_mini_batch_size=16"]),
    ("PPO with a critic", "", "recipes/arithmetic/ppo.yaml", []),
    ("conversations with tools", "", "recipes/calculator/grpo.yaml", []),
    ("SFT", "sft", "arithmetic/first_sft.yaml", []),
    ("DPO", "dpo", "arithmetic/first_dpo.yaml", []),
    ("reward model", "rm", "arithmetic/first_rm.yaml", []),
    ("distillation", "distill", "arithmetic/first_distill.yaml", []),
]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--trainer", required=True, help="our binary")
    add("--out", required=True, help="folder of the report")
    add("--steps", type=int, default=8, help="of each run")
    add("--threads", type=int, default=0, help="0 = as the program chooses")
    add("--timeout", type=float, default=600, help="seconds for one process")
    return parser.parse_args()


def columns(text, name):
    """The numbers in the last line with this name: the expected value first."""
    lines = [line for line in text.splitlines() if re.match(rf" *{name}  ", line)]
    return [float(word) for word in lines[-1].split() if re.fullmatch(r"[0-9.]+", word)] if lines else []


def measure(a, folder, name, command, recipe, settings):
    run = folder / re.sub(r"\W+", "-", name)
    common = [*([command] if command else []), "--config", recipe, *settings, f"trainer.total_training_steps={a.steps}",
              "trainer.save_freq=null", "trainer.save_best=false", "trainer.logger=[file]", f"trainer.default_local_dir={run}"]
    started = time.monotonic()
    Run([a.trainer, *common, "--dry-run"], folder / "dry.txt", ours.environment(a.threads)).wait(a.timeout)
    seconds = time.monotonic() - started
    text = (folder / "dry.txt").read_text()
    rows, peak = ours.run(a.trainer, run, common, a.threads, a.timeout)
    steps = [row["timing_s/step"] for row in rows if "timing_s/step" in row][1:]
    return {"name": name, "step": report.median(steps), "steps": steps, "expected": columns(text, "step"),
            "tokens": columns(text, "tokens of a response"), "real_tokens": [row.get("response_length/mean") for row in rows],
            "peak_gib": peak, "expected_peak": columns(text, "peak")[-1:], "dry_seconds": seconds, "answer": text}


def page(result):
    rows = []
    for row in result["rows"]:
        if not row["expected"]:
            raise SystemExit(f"{row['name']} was not measured:\n{row['answer']}")
        expected, most = row["expected"][0], row["expected"][-1]
        error = 100 * (expected / row["step"] - 1)
        peak = row["expected_peak"][0] if row["expected_peak"] else None
        rows.append([row["name"], row["dry_seconds"], expected, most if len(row["expected"]) > 1 else None, row["step"],
                     f"{error:+.0f} %", peak, row["peak_gib"], f"{100 * (peak / row['peak_gib'] - 1):+.0f} %" if peak else None])
    head = ["run", "dry run, s", "step forecast, s", "at most, s", "step, s", "error", "peak forecast, GiB", "peak, GiB", "error"]
    m = result["machine"]
    return f"# Forecasts of a dry run\n\n{result['trainer']}; {m['processor']}, {m['cores']} cores.\n\n" + report.table(head, rows)


def main():
    args = arguments()
    args.trainer = ours.binary(args.trainer)
    result = {"settings": {k: str(v) for k, v in vars(args).items()}, "machine": report.machine(),
              "trainer": report.output([args.trainer, "--version"])}
    with tempfile.TemporaryDirectory(prefix="bench-", dir=os.environ.get("TMPDIR")) as folder:
        result["rows"] = [measure(args, pathlib.Path(folder), *recipe) for recipe in RECIPES]
    report.write(args.out, "bench-dry-run", result, page(result))


if __name__ == "__main__":
    main()
