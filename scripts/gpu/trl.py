"""A training step compared with TRL's, by scripts/bench/bench-vs-trl on the same weights, prompts and settings."""
import json

from benchlib.process import Failed, Run

from .common import ROOT, TOLERANCE, Skipped, check, measured, need_modules
from .step import sizes


def trl(args, folder):
    if args.device not in ("cpu", "cuda", "cuda:0"):
        raise Skipped(f"bench-vs-trl has TRL on the devices cpu and cuda (the first GPU that is visible), not on {args.device}")
    need_modules(args.python, "torch", "transformers", "trl", "datasets")
    prompts, samples, tokens, micro = sizes(args)
    command = [args.python, ROOT / "scripts/bench/bench-vs-trl", "--trainer", args.trainer, "--device", args.kind,
               "--dtype", args.dtype, "--trl-precision", args.trl_precision, "--out", args.out, "--timeout", str(args.timeout),
               "--threads", str(args.threads), *[word for each in args.set for word in ("--set", each)]]
    if args.quick:
        command += ["--quick"]
    else:
        command += ["--shapes", ",".join(args.shapes), "--prompts", str(prompts), "--samples", str(samples),
                    "--tokens", str(tokens), "--micro", str(micro), "--warmup", "2", "--steps", "3", "--repeats", "2"]
    result = args.out / "bench-vs-trl.json"
    result.unlink(missing_ok=True)
    run = Run(command, folder / "log.txt")
    run.process.wait()
    if not result.exists():
        raise Failed(f"bench-vs-trl wrote nothing\n{run.last_words()}")
    for shape, found in json.loads(result.read_text())["shapes"].items():
        yield from of_shape(args, shape, found)


def of_shape(args, shape, found):
    for name, error in found["errors"].items():
        yield check(f"{shape}: {name}", False, error=error)
    if "trl_over_ours" in found:
        ratio = found["trl_over_ours"]
        yield check(f"{shape}: a step's time, TRL's over ours", ratio["step"] >= 1.0, found=ratio["step"], wanted=1.0)
        for phase in ratio:
            yield measured(f"{shape}: seconds of a step", {
                "phase": phase, "ours": found["ours"]["seconds"][phase], "TRL": found["trl"]["seconds"][phase],
                "TRL / ours": ratio[phase]})
    for side in ("ours", "trl"):
        if side in found:
            yield measured("Memory at its most, GiB", {"shape": shape, "side": side, "device": found[side]["device_gib"],
                                                       "process": found[side]["peak_gib"]})
    if "log_probs" in found:
        worst, count = found["log_probs"]["max_abs_difference"], found["log_probs"]["tokens"]
        # Two kernels round differently; in bfloat16, of 8 bits, the difference is for the reader to judge.
        holds = args.dtype != "float32" or worst <= TOLERANCE["log_probs"]
        yield check(f"{shape}: log-probabilities of generation and training, {count:,} tokens, {args.dtype}", holds, found=worst)
