#!/usr/bin/env python3
"""A model of a step on many GPUs, not a measurement: generation + log-probabilities + gradients + updates · communication + batch.

    python scripts/bench/scaling_model.py --nic 25e9 --through-host --weak

Every number is an assumption that a measured one should replace; docs/scale-out.md has the formulas and what is measured so far."""
import argparse


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    add = parser.add_argument
    add("--params", type=float, default=7e9)
    add("--trajectories", type=int, default=1024, help="of a step; with --weak, on 8 GPUs")
    add("--tokens", type=float, default=4096, help="of the mean response")
    add("--longest", type=float, default=16384, help="tokens of the longest response")
    add("--updates", type=int, default=4)
    add("--gpus-per-node", type=int, default=8)
    add("--flops", type=float, default=990e12)
    add("--mfu", type=float, default=0.35, help="share of the operations that passes reach")
    add("--hbm", type=float, default=3.35e12, help="bytes a second of a GPU's memory")
    add("--nvlink", type=float, default=350e9, help="bytes a second between the GPUs of a node")
    add("--nic", type=float, default=400e9, help="bytes a second of a node's network")
    add("--pcie", type=float, default=50e9)
    add("--alpha", type=float, default=15e-6, help="seconds of a message")
    add("--through-host", action="store_true", help="gradients go through the host's memory")
    add("--weak", action="store_true", help="the batch grows with the GPUs")
    return parser.parse_args()


def step(a, gpus):
    """Seconds of the parts of a step, and the tokens of its responses."""
    trajectories = a.trajectories * (gpus / 8 if a.weak else 1)
    tokens, reached = trajectories * a.tokens, gpus * a.flops * a.mfu
    # Weights are read once for a token of all sequences of a GPU; the longest response sets the number of such steps.
    decode = max(2 * a.params / a.hbm, 2 * a.params * max(trajectories / gpus, 1) / (a.flops * 0.5))
    weights, within, nodes = 4 * a.params, min(gpus, a.gpus_per_node), max(gpus / a.gpus_per_node, 1)
    update = 2 * weights * (within - 1) / within / a.nvlink + 2 * weights * (nodes - 1) / nodes / a.nic + 2 * a.alpha * (within + nodes)
    update += 4 * weights / a.pcie if a.through_host and gpus > 1 else 0
    return {
        "generation": max(a.longest * decode, 2 * a.params * tokens / reached),
        "log-probs": 4 * a.params * tokens / reached,
        "gradients": 8 * a.params * tokens / reached,
        "communication": a.updates * update,
        "batch": 24 * tokens / a.nic if gpus > 1 else 0,
    }, tokens


def main():
    a, of_eight = arguments(), None
    for gpus in (8, 16, 64, 128, 256, 512, 1000):
        parts, tokens = step(a, gpus)
        seconds = sum(parts.values())
        speed = tokens / gpus / seconds
        of_eight = of_eight or speed
        listed = ", ".join(f"{name} {part:.1f}" for name, part in parts.items())
        print(f"{gpus:4d} GPUs: {seconds:.0f} s ({listed}); {speed:.0f} tokens/s of each, {speed / of_eight:.0%} of 8 GPUs' efficiency")


main()
