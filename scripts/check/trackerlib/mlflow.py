"""A real `mlflow server` on SQLite, read by MlflowClient.

Its SQL storage keeps the largest finite number for infinity (`sanitize_metric_value` there), and SQLite has no negative zero.
"""

import json
import math
import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

PACKAGES = ["mlflow"]
LARGEST = 1.7976931348623157e308
state = {}


def start(folder):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    uri = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--port", str(port), "--workers", "1",
               "--backend-store-uri", f"sqlite:///{folder}/mlflow.db", "--artifacts-destination", f"{folder}/artifacts"]
    print("$", " ".join(command))
    with open(os.path.join(folder, "mlflow-server.log"), "w") as log:
        state["server"] = subprocess.Popen(command, stdout=log, stderr=log, cwd=folder, start_new_session=True)
    state["uri"] = uri
    for _ in range(180):
        try:
            urllib.request.urlopen(f"{uri}/health", timeout=2)
            return {"MLFLOW_TRACKING_URI": uri}
        except (urllib.error.URLError, OSError):
            time.sleep(1)
    stop()
    sys.exit(f"the MLflow server did not start; see {folder}/mlflow-server.log")


def expected(value):
    return math.copysign(LARGEST, value) if math.isinf(value) else value + 0.0


def sanitized(name):
    return name.replace("@", "_at_")


def read(run_dir, folder):
    from mlflow import MlflowClient

    client = MlflowClient(tracking_uri=state["uri"])
    run = client.get_run(json.loads((pathlib.Path(run_dir) / "trackers.json").read_text())["mlflow"])
    if run.info.status != "FINISHED":
        sys.exit(f"mlflow: the run's status is {run.info.status}")
    with open(os.path.join(run_dir, "metrics.jsonl")) as file:
        ours = {sanitized(name): name for line in file for name in json.loads(line)["data"]}
    rows = {}
    for key in run.data.metrics:
        # In a resumed run, the repeated steps are there twice.
        for metric in sorted(client.get_metric_history(run.info.run_id, key), key=lambda metric: metric.timestamp):
            rows.setdefault(metric.step, {})[ours.get(key, key)] = metric.value
    print(f"  {len(run.data.params)} parameters, {len(client.list_artifacts(run.info.run_id))} files")
    return rows


def stop():
    server = state.pop("server", None)
    if server is not None:
        os.killpg(server.pid, signal.SIGTERM)
        server.wait()
