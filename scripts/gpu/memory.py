"""Trains for some minutes: the memory at its end must equal that near its beginning."""
from benchlib import ours
from benchlib.process import Failed, Run

from .common import check, measured, training_settings

# The maximum increase, as a fraction and in GiB: peaks are sampled from time to time.
SHARE, GIB = 0.02, 0.05
SERIES = {"perf/max_memory_allocated_gb": "allocated", "perf/max_memory_reserved_gb": "reserved",
          "perf/cpu_memory_used_gb": "of the host"}


def memory(args, folder):
    shape, minutes = args.shapes[0], args.minutes
    prompts, samples, tokens, micro = (2, 2, 8, 4) if args.quick else (16, 8, 64, 32)
    # More steps than fit into the minutes; the prompts repeat.
    settings = training_settings(args, folder, shape, prompts, samples, tokens, micro, 1_000_000, rows=64 * prompts) + args.set
    run = Run([args.trainer, *settings], folder / "log.txt", ours.environment(args.threads))
    rows, end = [], None
    try:
        for seconds, row in run.rows(folder / "metrics.jsonl", args.timeout + 60 * minutes):
            rows.append(row["data"])
            # The minutes begin with the third step, when everything is compiled.
            end = end or (len(rows) == 3 and seconds + 60 * minutes)
            if end and seconds >= end:
                break
    finally:
        run.stop()
    if len(rows) < 10:
        raise Failed(f"{len(rows)} steps were done in the time; ten are needed to see growth\n{run.last_words()}")
    early = max(2, len(rows) // 10)
    for metric, name in SERIES.items():
        if metric not in rows[-1]:
            continue
        before, after = (max(row[metric] for row in part) for part in (rows[:early], rows[-early:]))
        yield check(f"{name}: GiB after {len(rows)} steps in {minutes:g} minutes, beside the first {early}",
                    after <= before * (1 + SHARE) + GIB, found=after, wanted=before, tolerance=f"{SHARE:.0%} + {GIB} GiB")
    for at in sorted({0, early - 1, len(rows) // 2, len(rows) - 1}):
        yield measured(f"{shape}: GiB", {"step": at + 1, **{name: rows[at].get(metric) for metric, name in SERIES.items()}})
