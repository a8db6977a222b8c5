#!/usr/bin/env python3
"""Compares a step in one process on all cores with the same step in one process per core, in turn: the cost of ranks.

    python scripts/bench/bench_ranks.py --trainer target/release/trainer --out FOLDER

The trainer is built with `--features mpi`; mpirun is Open MPI's. RLOO with the KL in the reward, on random weights and
responses of a fixed length, like `bench-vs-trl`. Memory is the peak of rank 0, including the optimizer's state."""
import argparse
import os
import pathlib
import tempfile

from benchlib import inputs, ours, report
from benchlib.process import Run, read_rows

LONGEST_PROMPT, TOKENS, WARMUP = 64, 64, 1


def settings(args, shape, folder, run):
    words = inputs.SHAPES[shape]["vocab_size"]
    data, model, tokenizer = folder / "prompts.jsonl", folder / "model", folder / "tokenizer"
    steps = WARMUP + args.steps
    if not data.exists():
        inputs.write_json(model / "config.json", inputs.SHAPES[shape])
        inputs.tokenizer(tokenizer, words)
        inputs.write_rows(data, inputs.fixed_prompts(args.prompts * steps, LONGEST_PROMPT, words))
    given = ours.step_settings(run, model, tokenizer, data, args.prompts, args.samples, LONGEST_PROMPT, TOKENS,
                               args.prompts * args.samples // args.ranks, steps, "cpu", init="random")
    return given


def measure(args, shape, folder, ranks, number):
    """The medians of a run's phases, and the peak memory of rank 0 in GiB."""
    run = folder / f"{ranks}-{number}"
    run.mkdir(parents=True)
    threads = args.ranks // ranks
    mpirun = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
    root = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    command = [*mpirun, args.trainer, *settings(args, shape, folder, run)]
    Run(command, run / "log.txt", {**ours.environment(threads), **root}).wait(args.timeout)
    rows = [row["data"] for row in read_rows(run / "metrics.jsonl")][WARMUP:]
    phases, _ = report.of_steps([ours.phase_seconds(row) for row in rows])
    return {**phases, "peak_gib": rows[-1]["perf/max_memory_allocated_gb"]}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", required=True, type=ours.binary)
    parser.add_argument("--out", required=True, type=pathlib.Path)
    parser.add_argument("--shapes", default="small,medium")
    parser.add_argument("--ranks", type=int, default=os.cpu_count(), help="processes, and threads of the one process")
    parser.add_argument("--prompts", type=int, default=8)
    parser.add_argument("--samples", type=int, default=4)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--timeout", type=int, default=600)
    args = parser.parse_args()
    result, rows = {"machine": report.machine(), "shapes": {}}, []
    for shape in args.shapes.split(","):
        with tempfile.TemporaryDirectory() as place:
            rounds = [{n: measure(args, shape, pathlib.Path(place), n, number) for n in (1, args.ranks)} for number in range(args.repeats)]
        medians = {n: {key: report.median(one[n][key] for one in rounds) for key in rounds[0][n]} for n in (1, args.ranks)}
        result["shapes"][shape] = {"rounds": rounds, "medians": medians}
        one, several = medians[1], medians[args.ranks]
        ratio = report.median(round_[1]["step"] / round_[args.ranks]["step"] for round_ in rounds)
        rows += [[shape, f"1 × {args.ranks}", *one.values(), None], [shape, f"{args.ranks} × 1", *several.values(), ratio]]
    head = ["shape", "processes × threads", "step, s", "generation", "log-probs", "update", "memory of rank 0, GiB", "speed of one process"]
    page = f"{args.prompts} prompts × {args.samples} responses of {TOKENS} tokens; medians of {args.repeats} runs in turn.\n\n"
    report.write(args.out, "ranks", result, page + report.table(head, rows))


main()
