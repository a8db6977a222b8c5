#!/usr/bin/env python3
"""Trains for 200 steps with all trackers at once, and compares what each tracker's real client reads back with metrics.jsonl.

    pip install mlflow tensorboard swanlab trackio clearml wandb
    python scripts/check/check_trackers.py target/release/trainer [--only mlflow,trackio] [--keep FOLDER]

Every step must be there, with every metric, and each value must be equal as an f64: NaN to NaN, infinity to infinity. If a
tracker's format cannot hold a value, its module in scripts/check/trackerlib has the expected replacement. Nothing leaves the
machine. Exit code 1 if anything differs.
"""

import argparse
import importlib
import importlib.metadata
import importlib.util
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
TRACKERS = ["tensorboard", "mlflow", "wandb", "swanlab", "trackio", "clearml"]
SETTINGS = [
    "--config", "ppo_trainer.yaml", "data.train_batch_size=2", "actor_rollout_ref.rollout.n=2",
    "actor_rollout_ref.actor.ppo_mini_batch_size=2", "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=4",
    "trainer.val_before_train=false", "trainer.test_freq=-1", "trainer.save_freq=null",
]
# Settings of the user, which must not reach the run.
FOREIGN = ("VERL_FILE_LOGGER", "TENSORBOARD_", "MLFLOW_", "WANDB_", "SWANLAB_", "TRACKIO_", "CLEARML_")
# Metrics of every kind of number: `reward/KEY/mean` of each.
REWARD = '''
import itertools

calls = itertools.count()


def compute_score(data_source, solution_str, ground_truth, extra_info=None):
    call = next(calls)
    return {"score": float(solution_str.strip() == ground_truth), "nan": float("nan"), "inf": float("inf"),
            "minus_inf": float("-inf"), "at@1": float("nan") if call % 7 == 0 else 0.1 * call,
            "tiny": 1e-300 * call, "huge": 1e300 * call}
'''


def train(trainer, names, steps, run, environment):
    (run.parent / "reward.py").write_text(REWARD)
    command = [trainer, *SETTINGS, f"custom_reward_function.path={run.parent / 'reward.py'}", f"trainer.total_training_steps={steps}",
               f"trainer.logger=[{','.join(['console', 'file', *names])}]", f"trainer.default_local_dir={run}",
               f"reward.python={sys.executable}"]
    print("$", " ".join(command), flush=True)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(FOREIGN)}
    done = subprocess.run(command, cwd=ROOT, env={**kept, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    warnings = [line for line in done.stderr.splitlines() if "WARN" in line or line.startswith("error")]
    if done.returncode != 0:
        sys.exit(f"the run ended with {done.returncode}: {done.stderr[-2000:]}")
    print("\n".join(warnings) or "  no warnings")


def logged(run):
    """metrics.jsonl, where numbers that JSON lacks are strings."""
    rows = (json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines())
    return {row["step"]: {name: float(value) for name, value in row["data"].items()} for row in rows}


def same(ours, theirs):
    return ours == theirs and math.copysign(1, ours) == math.copysign(1, theirs) or math.isnan(ours) and math.isnan(theirs)


def differences(ours, theirs, expected):
    for step in sorted(ours.keys() ^ theirs.keys()):
        yield f"step {step} is only {'ours' if step in ours else 'theirs'}"
    for step in sorted(ours.keys() & theirs.keys()):
        for name in sorted(ours[step].keys() | theirs[step].keys()):
            value, read = ours[step].get(name), theirs[step].get(name)
            if value is None or read is None or not same(expected(value), read):
                yield f"step {step}, {name}: logged {value!r}, read {read!r}"


def check(name, module, run, folder):
    versions = ", ".join(f"{package} {importlib.metadata.version(package)}" for package in module.PACKAGES)
    ours = logged(run)
    try:
        theirs = module.read(str(run), folder)
    except Exception as error:
        print(f"{name} ({versions}): WRONG: {type(error).__name__}: {error}", flush=True)
        return False
    expected = getattr(module, "expected", lambda value: value)
    wrong = list(differences(ours, theirs, expected))
    values = [value for row in ours.values() for value in row.values()]
    special = sum(not math.isfinite(value) for value in values)
    other = sum(not same(expected(value), value) for value in values)
    verdict = f"WRONG: {len(wrong)} differences" if wrong else "equal"
    kept = f", {other} as near as its format has them" if other else ""
    print(f"{name} ({versions}): {len(ours)} steps, {len(values)} values, {special} of them not finite{kept}: {verdict}", flush=True)
    for line in wrong[:5]:
        print(f"  {line}")
    return not wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("trainer", help="the binary")
    parser.add_argument("--only", help="names of trackers, joined by commas", default=",".join(TRACKERS))
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--keep", help="a folder for everything that is written, which is left there")
    args = parser.parse_args()
    # From the folder of this file; as a package, so that its modules do not hide those of the same names that they use.
    modules = {name: importlib.import_module(f"trackerlib.{name}") for name in args.only.split(",")}
    packages = [package for module in modules.values() for package in module.PACKAGES]
    missing = [package for package in packages if importlib.util.find_spec(package) is None]
    if missing:
        sys.exit(f"{sys.executable} -m pip install {' '.join(missing)}")
    temporary = None if args.keep else tempfile.TemporaryDirectory(prefix="trackers-", ignore_cleanup_errors=True)
    top = pathlib.Path(args.keep or temporary.name).resolve()
    top.mkdir(parents=True, exist_ok=True)
    run, environment, folders, started = top / "run", {}, {}, []
    try:
        for name, module in modules.items():
            folders[name] = str(top / name)
            os.makedirs(folders[name], exist_ok=True)
            environment.update(module.start(folders[name]))
            started.append(module)
        train(str(pathlib.Path(args.trainer).resolve()), list(modules), args.steps, run, environment)
        right = [check(name, module, run, folders[name]) for name, module in modules.items()]
    finally:
        for module in started:
            module.stop()
        if temporary:
            temporary.cleanup()
    sys.exit(0 if all(right) else 1)


if __name__ == "__main__":
    main()
