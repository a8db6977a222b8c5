#!/usr/bin/env python3
"""Two builds of burnish in turn, each time in a fresh process: did a change cost time?

    python3 scripts/bench/bench_versions.py --before OLD/trainer --after target/release/trainer --threads 2 [--repeats 5]

Prints a Markdown table of the median seconds of the arithmetic task's steps and, for random weights of the shapes of
bench-vs-trl, of a step of RLOO, of its phases, and of generation with one row. Needs only Python.
"""
import argparse
import pathlib
import shutil
import statistics
import tempfile

from benchlib import inputs, ours

LONGEST_PROMPT, TOKENS = 64, 64
PHASES = ("step", "generation", "log_probs", "update")


def steps_of(side, folder, settings, args, warmup):
    shutil.rmtree(folder, ignore_errors=True)
    trainer, root = getattr(args, side), getattr(args, f"{side}_root")
    rows, _ = ours.run(trainer, folder, settings, args.threads, args.timeout, root)
    return [ours.phase_seconds(row) for row in rows[warmup:]]


def arithmetic(args, folder):
    settings = ["--config", args.recipe, "trainer.total_training_steps=12", "trainer.val_before_train=false",
                "trainer.test_freq=-1", "trainer.save_freq=1000", "trainer.logger=[file]", "trainer.resume_mode=disable",
                f"trainer.default_local_dir={folder / 'run'}"]
    return "arithmetic", lambda side: steps_of(side, folder / "run", settings, args, 2), ("step", "generation", "update")


def shape(args, folder, name, prompts, samples, phases):
    words = inputs.SHAPES[name]["vocab_size"]
    inputs.write_json(folder / "model/config.json", inputs.SHAPES[name])
    inputs.tokenizer(folder / "tokenizer", words)
    inputs.prompts(folder / "prompts.jsonl", prompts * (args.steps + 1), LONGEST_PROMPT, words)
    settings = ours.step_settings(folder / "run", folder / "model", folder / "tokenizer", folder / "prompts.jsonl", prompts, samples,
                                  LONGEST_PROMPT, TOKENS, prompts * samples, args.steps + 1, "cpu", init="random")
    # Older programs do not know `null`.
    settings = [word.replace("save_freq=null", "save_freq=1000") for word in settings]
    if samples == 1:
        settings = [word.replace("adv_estimator=rloo", "adv_estimator=reinforce_plus_plus") for word in settings]
    label = f"{name}, {prompts} × {samples} × {TOKENS}"
    return label, lambda side: steps_of(side, folder / "run", settings, args, 1), phases


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", required=True, type=ours.binary)
    parser.add_argument("--after", required=True, type=ours.binary)
    for side in ("before", "after"):
        parser.add_argument(f"--{side}-root", metavar="FOLDER", help="the program's checkout, whose configurations it reads; default: here")
    parser.add_argument("--recipe", default="arithmetic/rloo_trl.yaml", help="of the arithmetic task, which both know")
    parser.add_argument("--shapes", default="small,medium", help=f"of {', '.join(inputs.SHAPES)}")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--repeats", type=int, default=5, help="rounds; each is a process of each program")
    parser.add_argument("--steps", type=int, default=2, help="counted steps of a process, after one that is not counted")
    parser.add_argument("--timeout", type=float, default=600)
    args = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        cases = [arithmetic(args, folder / "arithmetic")]
        for name in args.shapes.split(","):
            cases.append(shape(args, folder / name, name, 8, 4, PHASES))
            cases.append(shape(args, folder / f"{name}-1", name, 1, 1, ("generation",)))
        print("| median of the steps, s | | before | after | after / before |\n|---|---|---|---|---|")
        for label, run, phases in cases:
            times = {side: [] for side in ("before", "after")}
            for number in range(args.repeats):
                for side in sorted(times, reverse=number % 2 == 0):
                    times[side] += run(side)
            for phase in phases:
                before, after = (statistics.median(step[phase] for step in times[side]) for side in ("before", "after"))
                print(f"| {label} | {phase} | {before:.3g} | {after:.3g} | {after / before:.2f} |", flush=True)


if __name__ == "__main__":
    main()
