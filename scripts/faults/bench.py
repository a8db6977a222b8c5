"""Starts a run, repeats it after a fault, and compares the results with those of an undisturbed run."""
import json
import os
import pathlib
import re
import shutil
import subprocess
import zlib

from .workloads import STEPS

# Open MPI's launcher.
MPIRUN = ["mpirun", "--oversubscribe", "--bind-to", "none"]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Wrong(Exception):
    """A wrong action of a run."""


class Bench:
    """A pipeline in a folder, with one process or several ranks."""

    def __init__(self, trainer, workload, folder, ranks):
        self.trainer, self.workload, self.folder, self.ranks, self.count, self.greater = trainer, workload, folder, ranks, 0, "true"

    def program(self, run, keep, steps=STEPS):
        best = [f"trainer.greater_is_better={self.greater}"] if self.workload.metric else []
        name = "max_actor_ckpt_to_keep" if self.workload.metric else "max_ckpt_to_keep"
        slices = [f"trainer.gradient_slices={self.ranks}"] if self.ranks > 1 else []
        return [self.trainer, *self.workload.settings, *best, *slices, f"trainer.{name}={keep}",
                f"trainer.total_training_steps={steps}", f"trainer.default_local_dir={run}"]

    def command(self, run, keep, steps=STEPS, ranks=None):
        program, ranks = self.program(run, keep, steps), ranks or self.ranks
        return [*MPIRUN, "-n", str(ranks), *program] if ranks > 1 else program

    def environment(self, **more):
        names = ("VERL_FILE_LOGGER_PATH", "VERL_FILE_LOGGER_ROOT", "TENSORBOARD_DIR", "RUST_LOG")
        kept = {name: value for name, value in os.environ.items() if name not in names}
        return {**kept, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "RAYON_NUM_THREADS": "1", **more}

    def run(self, run, keep, steps=STEPS, prefix=(), user=None, ranks=None, **environment):
        command = [*prefix, *self.command(run, keep, steps, ranks)]
        return subprocess.run(command, cwd=ROOT, env=self.environment(**environment), user=user, capture_output=True, text=True, timeout=300)

    def prepare(self):
        """An undisturbed run in one process, and copies of its folder after one step (keep 1) and two (keep 2). Step 2 is better than
        step 1, so that its save moves the best and deletes a checkpoint."""
        self.whole = self.folder / "undisturbed"
        self.base = {}
        self.insist(self.run(self.whole, 2, ranks=1))
        if metric := self.workload.metric:
            values = [json.loads(line)["data"][metric] for line in (self.whole / "metrics.jsonl").read_text().splitlines()]
            if values[0] == values[1]:
                raise Wrong(f"steps 1 and 2 are equally good ({values}): there is no best to follow")
            self.greater = str(values[1] > values[0]).lower()
        shutil.rmtree(self.whole)
        for keep, steps in ((1, 1), (2, 2)):
            self.base[keep] = self.folder / f"base{keep}"
            self.insist(self.run(self.base[keep], keep, steps, ranks=1))
        self.insist(self.run(self.whole, 2, ranks=1))
        self.expected = self.outcome(self.whole)

    def insist(self, done):
        if done.returncode != 0:
            raise Wrong(f"exit code {done.returncode}: {done.stderr.strip()[-600:]}")

    def copy(self, keep, name=None):
        """A separate folder at the place of the base; `None` for a folder that does not exist yet. Its name always has the same length,
        as do the calls that name it."""
        self.count += 1
        run = self.folder / f"run{self.count:05}" if name is None else self.folder / name
        if keep:
            shutil.copytree(self.base[keep], run)
        return run

    def outcome(self, run):
        """All results that must not depend on the disturbances."""
        rows = []
        for line in (run / "metrics.jsonl").read_text().splitlines():
            row = json.loads(line)
            row["data"] = {k: v for k, v in row["data"].items() if not k.startswith(("timing_", "perf/"))}
            rows.append(row)
        last = run / f"global_step_{STEPS}"
        # The manifest counts the saves of the folder, and the configuration names the folder.
        names = [p for p in sorted(last.rglob("*")) if p.is_file() and p.name not in ("manifest.json", "config.yaml")]
        files = {str(p.relative_to(last)): zlib.crc32(p.read_bytes()) for p in names}
        pointers = {p.name: p.read_text() for p in sorted(run.glob("*_checkpointed_iteration.txt"))}
        samples = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
        return rows, files, pointers, samples

    def resume(self, run, keep, ranks=None, said=""):
        """Runs the same command again and compares. `said` are the messages of the disturbed run."""
        done = self.run(run, keep, ranks=ranks)
        self.insist(done)
        self.compare(run, said)
        return done.stderr

    def compare(self, run, said=""):
        unvalidated = {int(step) for step in re.findall(r"step (\d+) was not validated", said)}
        ours, theirs = (without_validations(outcome, unvalidated) for outcome in (self.outcome(run), self.expected))
        for ours, theirs, what in zip(ours, theirs, ("metrics", "files", "pointers", "samples")):
            if ours != theirs:
                raise Wrong(f"other {what} than undisturbed: {difference(ours, theirs)}"[:1500])
        known = {p.name for p in self.whole.iterdir()}
        left = [p.name for p in run.iterdir() if p.name not in known and not re.match(r"global_step_|trainer-rank|kept_|earlier-|\.lock$", p.name)]
        if left:
            raise Wrong(f"left behind: {left}")


def without_validations(outcome, steps):
    """The results without the validations of these steps: a run that is asked to stop in one leaves it out, and says so."""
    if not steps:
        return outcome
    rows, files, pointers, samples = outcome
    values = lambda row: {k: v for k, v in row["data"].items() if row["step"] not in steps or not k.startswith("val")}
    return ([{**row, "data": values(row)} for row in rows], files, {k: v for k, v in pointers.items() if not k.startswith("best")},
            [row for row in samples if row["kind"] != "val" or row["step"] not in steps])


def difference(ours, theirs):
    """The differing parts of two values."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
        return {key: difference(ours.get(key), theirs.get(key)) for key in keys}
    if isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        return [difference(*pair) for pair in zip(ours, theirs) if pair[0] != pair[1]]
    return f"{len(ours)} elements instead of {len(theirs)}" if isinstance(ours, list) and isinstance(theirs, list) else f"{ours} instead of {theirs}"


def sound(folder):
    """True if a checkpoint agrees with its manifest."""
    try:
        manifest = json.loads((folder / "manifest.json").read_text())
        return all(f"{zlib.crc32((folder / f['path']).read_bytes()):08x}" == f["crc32"] for f in manifest["files"])
    except (OSError, ValueError, KeyError):
        return False


def sound_ones(run):
    return [p.name for p in run.glob("global_step_*") if sound(p)]


def one_error(done, code, *parts):
    """The run ended with this exit code and one message with `parts`."""
    lines = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    if done.returncode != code or len(lines) != 1 or "panicked" in done.stderr:
        raise Wrong(f"exit code {done.returncode}, {len(lines)} errors: {done.stderr.strip()[-800:]}")
    for part in parts:
        if part not in lines[0]:
            raise Wrong(f"the error does not name {part}: {lines[0]}")
