#!/usr/bin/env python3
"""The cost of trackers per step: the time of the training thread for a row (`timing_s/tracking`), in runs of 200 steps.

    pip install mlflow tensorboard swanlab trackio clearml wandb
    python scripts/bench/bench_trackers.py target/release/trainer [--only console,wandb] [--markdown FILE]

Every run has `file`, whose rows are synced to disk; `all` has all trackers. Each set of trackers runs REPEATS times, in turn. A
row has about 100 metrics, and ten rows have a table of five samples. The share is of a step of 100 ms.
"""

import argparse
import importlib
import json
import pathlib
import statistics
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "check"))
import check_trackers  # noqa: E402

REPEATS = 3


def rows(trainer, names, modules, folder):
    environment = {}
    for name in names:
        if name in modules:
            place = folder / name
            place.mkdir(parents=True, exist_ok=True)
            environment.update(modules[name].start(str(place)))
    try:
        run = folder / "run"
        run.parent.mkdir(parents=True, exist_ok=True)
        check_trackers.train(trainer, [n for n in names if n != "file"], 200, run, environment)
        data = [json.loads(line)["data"] for line in (run / "metrics.jsonl").read_text().splitlines()]
    finally:
        for name in names:
            if name in modules:
                modules[name].stop()
    return [1000 * row["timing_s/tracking"] for row in data if "timing_s/tracking" in row], len(data[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", help="the binary")
    parser.add_argument("--only", default=",".join(check_trackers.TRACKERS))
    parser.add_argument("--markdown", help="a file for the table")
    args = parser.parse_args()
    modules = {name: importlib.import_module(f"trackerlib.{name}") for name in args.only.split(",")}
    sets = {"console, file": ["file"], **{f"{name}": [name] for name in modules}, "all": list(modules)}
    trainer = str(pathlib.Path(args.trainer).resolve())
    measured, metrics = {name: [] for name in sets}, 0
    for repeat in range(REPEATS):
        for name, trackers in sets.items():
            with tempfile.TemporaryDirectory(prefix="trackers-", ignore_cleanup_errors=True) as folder:
                times, metrics = rows(trainer, trackers, modules, pathlib.Path(folder) / str(repeat))
            measured[name].append(times)
    lines = [f"| with console and file (rows of {metrics} metrics) | median, ms | 95 % | greatest | share of a 100 ms step (median) |", "|---|---|---|---|---|"]
    for name, runs in measured.items():
        each = [(statistics.median(times), sorted(times)[int(0.95 * len(times))], max(times)) for times in runs]
        middle, high, worst = (statistics.median(column) for column in zip(*each))
        lines.append(f"| {name} | {middle:.2f} | {high:.2f} | {worst:.1f} | {middle:.2f} % |")
    print("\n".join(lines))
    if args.markdown:
        pathlib.Path(args.markdown).write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
