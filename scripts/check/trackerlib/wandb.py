"""W&B: the trainer's run reaches a W&B-shaped server by the official client in both ways, and every value is compared.

While the trainer runs, the client it starts (`wandb beta sync --live`) uploads to one server; afterwards `wandb sync` uploads the
same folder to another. Everything except metrics is checked here: configuration, summary, tables, exit code.
"""

import json
import math
import os
import shutil
import subprocess
import sys
from pathlib import Path

from .wandb_server import Server

PACKAGES = ["wandb"]
# Of the right length; the server takes any.
KEY = "0" * 40
OURS = ("_step", "_timestamp", "_runtime", "_wandb")

_live = None


def _client():
    beside = Path(sys.executable).with_name("wandb")
    found = str(beside) if beside.exists() else shutil.which("wandb")
    if not found:
        raise RuntimeError("no wandb client: pip install wandb")
    return Path(found)


def _environment(server):
    path = "%s%s%s" % (_client().parent, os.pathsep, os.environ.get("PATH", ""))
    return {"WANDB_BASE_URL": server.url, "WANDB_API_KEY": KEY, "PATH": path}


def start(folder):
    """Serves; returns the environment with which the trainer finds the server and the client."""
    global _live
    _live = Server()
    home = Path(folder) / "wandb-home"
    home.mkdir(parents=True, exist_ok=True)
    return {**_environment(_live), "WANDB_MODE": "online", "WANDB_ENTITY": "team", "WANDB_CACHE_DIR": str(home)}


def stop():
    _live.stop()


def read(run_dir, folder):
    """All rows by step, after the checks of everything else."""
    run_folder = _run_folder(Path(run_dir))
    synced = Server()
    command = [str(_client()), "sync", "--include-synced", str(run_folder)]
    version = subprocess.run([str(_client()), "--version"], capture_output=True, text=True).stdout.strip()
    print("wandb: %s; %s" % (" ".join(command), version))
    try:
        done = subprocess.run(command, env={**os.environ, **_environment(synced)}, cwd=folder, capture_output=True, text=True, timeout=300)
        if done.returncode != 0:
            raise RuntimeError("wandb sync failed: " + done.stderr[-2000:])
        rows = {}
        for name, server in [("live", _live), ("sync", synced)]:
            if len(server.runs) != 1:
                log = run_folder / "logs" / "sync.log"
                raise RuntimeError("%s: %d runs on the server; %s" % (name, len(server.runs), log.read_text() if log.exists() else ""))
            (run,) = server.runs.values()
            rows[name] = _checked(run, name, run_folder, Path(run_dir))
            about = (name, len(rows[name]), run.received, run.exit_code)
            print("wandb: %s: %d rows in %d lines, complete, exit code %s" % about)
            assert not server.unknown, server.unknown
    finally:
        synced.stop()
    assert _same(rows["live"], rows["sync"]), "the live upload differs from wandb sync"
    return rows["sync"]


def _run_folder(run_dir):
    name = json.loads((run_dir / "trackers.json").read_text())["wandb"]
    return Path(os.environ.get("WANDB_DIR") or run_dir) / "wandb" / name


def _checked(run, name, run_folder, run_dir):
    history = run.rows()
    assert len(run.lines["wandb-history.jsonl"]) == run.received, "%s: lines were replaced" % name
    # The live upload of a run that was killed starts over.
    assert run.received == len(history) or name == "live", "%s: %d lines for %d rows" % (name, run.received, len(history))
    assert run.complete and run.exit_code == 0, "%s: complete %s, exit code %s" % (name, run.complete, run.exit_code)
    summary = run.summary()
    wrong = [key for key, value in history[-1].items() if key != "_wandb" and not _same(summary.get(key), value)]
    assert not wrong, "%s: the summary is not the last row: %s" % (name, wrong)
    assert any("system.proc.memory.rssMB" in event for event in run.events()), "%s: no system metrics" % name
    tables = {path.relative_to(run_folder / "files").as_posix(): path.read_bytes()
              for path in (run_folder / "files").glob("media/table/*.json")}
    uploaded = {path: content for path, content in run.files.items() if path.startswith("media/")}
    assert tables.items() <= uploaded.items(), "%s: tables %s, uploaded %s" % (name, sorted(tables), sorted(uploaded))
    pointed = {value["path"] for row in history for value in row.values() if isinstance(value, dict) and value.get("_type") == "table-file"}
    assert pointed <= set(tables), "%s: rows point to %s, tables are %s" % (name, sorted(pointed), sorted(tables))
    _check_config(run, name, run_dir)
    return {row["_step"]: {key: float(value) for key, value in row.items() if key not in OURS and not isinstance(value, dict)}
            for row in history}


def _check_config(run, name, run_dir):
    record = run_dir / "run.json"
    if not record.exists():
        return
    for entry in json.loads(record.read_text())["config"]:
        # The client keeps the leaves of a configuration, and an empty mapping has none.
        if entry["value"] == {}:
            continue
        first, *rest = entry["key"].split(".")
        value = run.config[first]["value"]
        for part in rest:
            value = value[part]
        assert _same(value, entry["value"]), "%s: %s is %r, not %r" % (name, entry["key"], value, entry["value"])


def _same(one, other):
    """Equal, where NaN equals NaN."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    both_nan = isinstance(one, float) and isinstance(other, float) and math.isnan(one) and math.isnan(other)
    return one == other or both_nan
