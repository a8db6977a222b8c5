"""ClearML's offline session, as the importer of the package (`Task.import_offline_session`) reads it.

The importer itself needs a server, so a server's handling of the events is not checked. ClearML's curves have no values that are
not finite: those are lines of the console.
"""

import glob
import json
import os
import re

PACKAGES = ["clearml"]


def start(folder):
    return {"CLEARML_OFFLINE_MODE": "1", "CLEARML_CACHE_DIR": os.path.join(folder, "clearml")}


def events(folder, name):
    for path in glob.glob(os.path.join(folder, "clearml", "**", "offline-*", name), recursive=True):
        with open(path) as file:
            for line in file:
                yield from json.loads(line)


def read(run_dir, folder):
    with open(os.path.join(run_dir, "metrics.jsonl")) as file:
        ours = {name for line in file for name in json.loads(line)["data"]}
    rows = {}
    for event in events(folder, "metrics.jsonl"):
        name = f"{event['metric']}/{event['variant']}"
        if event["type"] == "training_stats_scalar" and name in ours:
            rows.setdefault(event["iter"], {})[name] = event["value"]
    for event in events(folder, "log.jsonl"):
        for step, name, value in re.findall(r"^step (\d+): (\S+) is (nan|-?inf)$", event["msg"], re.MULTILINE):
            rows.setdefault(int(step), {})[name] = float(value)
    return rows


def stop():
    pass
