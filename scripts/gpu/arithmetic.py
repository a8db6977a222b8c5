"""The arithmetic task: to its end on the device, and its first steps compared with those on the CPU."""
import time

from benchlib import ours, report
from benchlib.process import Run, read_rows

from .common import ROOT, TOLERANCE, check, near

ACCURACY = "val-core/burnish/arithmetic/acc/mean@1"


def task(args, folder, steps, where, more=()):
    settings = ["--config", "ppo_trainer.yaml", "algorithm.adv_estimator=rloo", f"trainer.total_training_steps={steps}",
                "trainer.logger=[file]", "trainer.resume_mode=disable", f"trainer.device={where}",
                f"trainer.default_local_dir={folder}", *more]
    start = time.monotonic()
    folder.mkdir(parents=True)
    Run([args.trainer, *settings], folder / "log.txt", ours.environment(args.threads), ROOT).wait(args.timeout)
    return [row["data"] for row in read_rows(folder / "metrics.jsonl")], time.monotonic() - start


def cpu(args, folder):
    """The same run on the device and on the CPU. Sampling draws the same random numbers, so the first step's responses are
    almost equal."""
    steps = 2 if args.quick else 8
    more = ("actor_rollout_ref.rollout.calculate_log_probs=true", "actor_rollout_ref.model.dtype=float32", "trainer.test_freq=-1")
    runs = {where: task(args, folder / where.replace(":", ""), steps, where, more)[0] for where in {"cpu", args.device}}
    (before, first, *_), (cpu_before, cpu_first, *_) = runs[args.device], runs["cpu"]
    yield check("accuracy before training, as on the CPU", abs(before[ACCURACY] - cpu_before[ACCURACY]) <= 1 / 256,
                found=before[ACCURACY], wanted=cpu_before[ACCURACY], tolerance=1 / 256)
    for metric, tolerance in (("critic/score/mean", 0.01), ("actor/grad_norm", 0.02), ("actor/entropy", 0.001)):
        if metric in cpu_first:
            yield check(f"{metric} of the first step, as on the CPU", near(first[metric], cpu_first[metric], tolerance),
                        found=first[metric], wanted=cpu_first[metric], tolerance=tolerance)
    trained = runs[args.device][1:]
    worst = max(row["training/rollout_log_probs_abs_diff_max"] for row in trained)
    tokens = sum(row["response_length/mean"] for row in trained) * 64 * 8
    yield check(f"log-probabilities of generation and training, {tokens:,.0f} tokens", worst <= TOLERANCE["log_probs"], found=worst,
                wanted=0.0, tolerance=TOLERANCE["log_probs"])


def arithmetic(args, folder):
    steps, wanted = (24, 0.7) if args.quick else (384, 0.95)
    rows, seconds = task(args, folder / "run", steps, args.device)
    last = [row[ACCURACY] for row in rows if ACCURACY in row][-1]
    peak = max(row.get("perf/max_memory_allocated_gb", 0) for row in rows)
    yield check(f"accuracy after {steps} steps", last >= wanted, found=last, wanted=wanted, seconds=seconds, peak_gib=peak,
                step_seconds=report.median(row["timing_s/step"] for row in rows[1:]))
