"""Draws the accuracy curves of all estimators and losses: docs/benchmarks/algorithms.{md,svg}.

    BURNISH_CURVES=FOLDER BURNISH_STEPS=32 BURNISH_SEEDS=3 cargo test --release --test binary improve
    python3 scripts/bench/algorithm_curves.py FOLDER docs/benchmarks
"""

import json
import pathlib
import sys

ACCURACY = "val-core/burnish/arithmetic/acc/mean@1"
COLUMNS, WIDTH, HEIGHT, MARGIN = 5, 190, 120, 28
LOW, HIGH = 50.0, 100.0

PAGE = """# Every estimator and every loss, measured

Greedy accuracy on the 512 test problems of `data/arithmetic/` (%), {steps} steps of 64 prompts × 8 samples in two updates
per step, mean of {seeds} seeds, default learning rate for all; the last column is the range of the seeds after the last
step. **Each learns with each seed.** The page does not show which is best. One standard deviation of an accuracy is one to
two points. `grpo_passk` has 2 responses per prompt: it learns only from groups with a single best response. `a2po` draws
from 512 prompts, whose values 4 responses to each estimate. `gae` waits for its critic.

```sh,needs-idle-machine
BURNISH_CURVES=FOLDER BURNISH_STEPS={steps} BURNISH_SEEDS={seeds} cargo test --release --test binary improve
python3 scripts/bench/algorithm_curves.py FOLDER docs/benchmarks
```

![Accuracy by step, one panel for each algorithm](algorithms.svg)

{tables}"""


def curve(path):
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [(row["step"], 100 * row["data"][ACCURACY]) for row in rows if ACCURACY in row["data"]]


def read(folder):
    """The curves of all seeds, by name."""
    runs = {}
    for run in sorted(folder.glob("*/*/metrics.jsonl")):
        runs.setdefault(run.parent.parent.name, []).append(curve(run))
    return dict(sorted(runs.items()))


def mean(curves):
    return [(points[0][0], sum(accuracy for _, accuracy in points) / len(points)) for points in zip(*curves)]


def panel(name, curves, others, x0, y0, last):
    def at(step, accuracy):
        x = x0 + (WIDTH - MARGIN) * step / last
        y = y0 + (HEIGHT - MARGIN) * (1 - (max(accuracy, LOW) - LOW) / (HIGH - LOW))
        return f"{x:.1f},{y:.1f}"

    line = lambda points: " ".join(at(*point) for point in points)
    parts = [f'<polyline points="{line(other)}" fill="none" stroke="#ddd"/>' for other in others]
    parts += [f'<polyline points="{line(seed)}" fill="none" stroke="#c2410c" stroke-opacity="0.4"/>' for seed in curves]
    points = mean(curves)
    parts.append(f'<polyline points="{line(points)}" fill="none" stroke="#c2410c" stroke-width="2"/>')
    parts.append(f'<text x="{x0}" y="{y0 - 5}" font-weight="bold">{name}</text>')
    x, y = x0 + WIDTH - MARGIN, y0 + HEIGHT - MARGIN - 5
    parts.append(f'<text x="{x}" y="{y}" text-anchor="end" fill="#c2410c">{points[-1][1]:.1f}</text>')
    for accuracy in (LOW, HIGH):
        y = y0 + (HEIGHT - MARGIN) * (1 - (accuracy - LOW) / (HIGH - LOW))
        parts.append(f'<line x1="{x0}" y1="{y}" x2="{x0 + WIDTH - MARGIN}" y2="{y}" stroke="#999" stroke-width="0.5"/>')
    return "\n".join(parts)


def figure(groups, last):
    parts, y = [], 20
    for title, runs in groups:
        parts.append(f'<text x="10" y="{y + 4}" font-size="14">{title}: accuracy from {LOW:.0f} to {HIGH:.0f} %, step 0 to {last}</text>')
        y += 34
        for i, (name, curves) in enumerate(runs.items()):
            x0, y0 = 10 + WIDTH * (i % COLUMNS), y + HEIGHT * (i // COLUMNS)
            parts.append(panel(name, curves, [mean(other) for other in runs.values()], x0, y0, last))
        y += HEIGHT * -(-len(runs) // COLUMNS) + 10
    size = f'width="{WIDTH * COLUMNS}" height="{y}"'
    style = 'font-family="sans-serif" font-size="11"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {style}>\n<rect {size} fill="white"/>\n' + "\n".join(parts) + "\n</svg>\n"


def table(title, runs):
    steps = [step for step, _ in next(iter(runs.values()))[0]]
    head = [title.lower()[:-1]] + [str(step) for step in steps] + ["range"]
    rows = []
    for name, curves in runs.items():
        ends = [points[-1][1] for points in curves]
        means = [f"{accuracy:.1f}" for _, accuracy in mean(curves)]
        rows.append([f"`{name}`"] + means + [f"{min(ends):.1f} to {max(ends):.1f}"])
    lines = [head, ["---"] * len(head)] + rows
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def main(source, target):
    groups = [(title, read(source / folder)) for title, folder in (("Estimators", "estimators"), ("Losses", "losses"))]
    runs = [curves for _, runs in groups for curves in runs.values()]
    last = max(step for curves in runs for points in curves for step, _ in points)
    (target / "algorithms.svg").write_text(figure(groups, last))
    tables = "\n".join(table(title, runs) for title, runs in groups)
    seeds = len(runs[0])
    (target / "algorithms.md").write_text(PAGE.format(steps=last, seeds=seeds, tables=tables))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
