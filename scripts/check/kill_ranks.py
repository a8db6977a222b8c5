"""Kills processes of a run on several ranks, resumes it on other numbers of ranks, and compares it with a run that was never stopped.

    python scripts/check/kill_ranks.py --trainer target/release/trainer --kills 50

The trainer is built with `--features mpi`; mpirun is Open MPI's. Every second kill falls into a save. The metrics, without those of time and
memory, and all files of the last checkpoint must be the same bytes."""

import argparse
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SETTINGS = [
    "--config", "ppo_trainer.yaml", "algorithm.adv_estimator=gae", "algorithm.use_kl_in_reward=true", "critic.ppo_epochs=2",
    "data.train_batch_size=8", "data.val_max_samples=16", "actor_rollout_ref.rollout.n=2", "trainer.save_freq=2", "trainer.test_freq=10",
    "actor_rollout_ref.actor.ppo_mini_batch_size=4", "trainer.logger=[file]", "trainer.gradient_slices=4", "trainer.max_actor_ckpt_to_keep=2",
]


def start(args, folder, ranks):
    """Starts the run on this many ranks, in its own process group."""
    env = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "RAYON_NUM_THREADS": "1", "RUST_LOG": "warn"}
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)] if ranks > 1 else []
    command += [args.trainer, *SETTINGS, f"trainer.total_training_steps={args.steps}", f"trainer.default_local_dir={folder}"]
    return subprocess.Popen(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True)


def processes(run, trainer):
    """The trainers of a run."""
    listed = subprocess.run(["pgrep", "-g", str(os.getpgid(run.pid)), "-f", trainer], capture_output=True, text=True).stdout.split()
    children = subprocess.run(["pgrep", "-P", str(run.pid)], capture_output=True, text=True).stdout.split()
    return [int(pid) for pid in {*listed, *children} - {str(run.pid)}] or [run.pid]


def is_saving(folder, since):
    """True if a checkpoint is being written: a folder with a temporary name is not older than the process."""
    try:
        staged = [path for path in folder.glob("*global_step_*") if not path.name.startswith("global_step_")]
        return any(path.stat().st_mtime >= since for path in staged)
    except FileNotFoundError:
        return False


def wait_for_kill(run, folder, during_save):
    """Waits for the moment of the kill; returns false if the run ends before."""
    since, end = time.time(), time.monotonic() + random.uniform(0.3, 4.0)
    while run.poll() is None:
        if time.monotonic() > end and (not during_save or is_saving(folder, since) or time.monotonic() > end + 5):
            return True
        time.sleep(0.0005 if during_save else 0.01)
    return False


def results(folder):
    """The rows of metrics without times, and the checksums of the last checkpoint."""
    rows = []
    for line in (folder / "metrics.jsonl").read_text().splitlines():
        row = json.loads(line)
        rows.append((row["step"], {k: v for k, v in row["data"].items() if not k.startswith(("timing_", "perf/"))}))
    last = folder / f"global_step_{(folder / 'latest_checkpointed_iteration.txt').read_text()}"
    files = sorted(path for path in last.rglob("*") if path.is_file() and path.name not in ("config.yaml", "manifest.json"))
    return rows, {str(path.relative_to(last)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--trainer", required=True)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()
    args.trainer = str(Path(args.trainer).resolve())
    random.seed(args.seed)
    kills, saves, rounds, codes = 0, 0, 0, {}
    with tempfile.TemporaryDirectory() as place:
        whole = Path(place) / "whole"
        assert start(args, whole, 1).wait() == 0, "the run that is never stopped failed"
        expected = results(whole)
        while kills < args.kills:
            rounds += 1
            folder, ranks = Path(place) / f"killed{rounds}", [2, 1, 3, 4]
            while True:
                since, run = time.time(), start(args, folder, ranks[kills % 4])
                during_save = kills % 2 == 1
                if kills < args.kills and wait_for_kill(run, folder, during_save):
                    saves += is_saving(folder, since)
                    os.kill(random.choice(processes(run, args.trainer)), signal.SIGKILL)
                    kills += 1
                status = run.wait()
                codes[status] = codes.get(status, 0) + 1
                if status == 0:
                    break
                if status not in (137, -9, 75, 1):
                    sys.exit(f"status {status}: {run.stderr.read()}")
            if results(folder) != expected:
                sys.exit(f"round {rounds} with seed {args.seed} differs from the run that was never stopped")
            print(f"{kills} kills, {saves} of them during a save, {rounds} runs: the same bytes; exit codes {codes}", flush=True)


main()
