"""A training step of ours on models of real shapes: seconds of its phases, their share of the card's peak, and memory."""
from benchlib import flop, inputs, ours, report

from .cards import of, share
from .common import measured, pieces, prompt_lengths, train

PHASES = ("step", "generation", "log_probs", "update")
BETA = 0.05


def sizes(args):
    """(prompts, samples, tokens, micro) of a step."""
    return (2, 2, 8, 4) if args.quick else (16, 8, 256, 32)


def step(args, folder):
    yield from pieces((shape, lambda s=shape: of_shape(args, folder / s, s)) for shape in args.shapes)


def of_shape(args, folder, shape):
    prompts, samples, tokens, micro = sizes(args)
    warm, steps = (1, 2) if args.quick else (2, 3)
    rows = train(args, folder, shape, prompts, samples, tokens, micro, warm + steps, BETA, args.set)
    counted = rows[-steps:]
    seconds, _ = report.of_steps([ours.phase_seconds(row) for row in counted])
    lengths = prompt_lengths(folder)[-prompts:]
    passes = ours.log_prob_passes(rows[-1])
    work = flop.phases(flop.Model.of(inputs.SHAPES[shape]), lengths, tokens, samples, passes)
    peak = (of(args) or {}).get("flop_per_s")
    for phase in PHASES:
        rate = work[phase] / max(seconds[phase], 1e-9)
        yield measured(f"{shape}: a step of {prompts} prompts × {samples} responses × {tokens} tokens, {args.dtype}", {
            "phase": phase, "seconds": seconds[phase], "TFLOP": work[phase] / 1e12, "TFLOP/s": rate / 1e12,
            "of the card's peak": share(rate, peak)})
    last = rows[-1]
    yield measured("Tokens of prompts and responses per second, and memory in GiB", {
        "shape": shape, "tokens/s": last.get("perf/throughput"), "allocated at most": last.get("perf/max_memory_allocated_gb"),
        "reserved at most": last.get("perf/max_memory_reserved_gb"), "of the host": last.get("perf/cpu_memory_used_gb")})
