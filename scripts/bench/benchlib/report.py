"""Medians, the machine, tables, and the two files of a report."""
import json
import os
import pathlib
import platform
import statistics
import subprocess

median = statistics.median


def of_steps(steps):
    """The median of each phase over steps, and the range of the steps of a run: {phase: seconds}, (fastest, slowest)."""
    medians = {phase: median(step[phase] for step in steps) for phase in steps[0]}
    whole = [step["step"] for step in steps]
    return medians, (min(whole), max(whole))


def machine():
    found = {"platform": platform.platform(), "cores": os.cpu_count(), "processor": platform.processor()}
    try:
        names = [line.split(":")[1].strip() for line in open("/proc/cpuinfo") if line.startswith("model name")]
        found.update(processor=names[0], cores=len(names))
    except (OSError, IndexError):
        pass
    gpu = output(["nvidia-smi", "--query-gpu=name,memory.total,driver_version", "--format=csv,noheader"])
    return {**found, "gpu": gpu} if gpu else found


def output(command):
    """The output of a program, or nothing if it is missing or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return None


def number(value):
    """Three significant digits or whole thousands."""
    if value is None:
        return "—"
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return str(value)
    if value == 0 or 1e-3 <= abs(value) < 1e5:
        return f"{value:,.0f}" if abs(value) >= 1000 or value == int(value) else f"{value:.3g}"
    return f"{value:.1e}"


def table(head, rows):
    lines = [head, ["---"] * len(head), *[[number(cell) for cell in row] for row in rows]]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def write(folder, name, result, page, show=True):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.json").write_text(json.dumps(result, indent=1, default=str) + "\n")
    (folder / f"{name}.md").write_text(page)
    if show:
        print(f"{page}\nwritten: {folder / name}.json and .md", flush=True)
