"""Trackio's local storage, read by its own interface."""

import os

PACKAGES = ["trackio"]


def start(folder):
    return {"TRACKIO_DIR": os.path.join(folder, "trackio")}


def read(run_dir, folder):
    os.environ["TRACKIO_DIR"] = os.path.join(folder, "trackio")
    import trackio
    from trackio.sqlite_storage import SQLiteStorage

    rows = {}
    for project in SQLiteStorage.get_projects():
        for run in trackio.Api().runs(project):
            for log in SQLiteStorage.get_logs(project, run.name, run_id=run.id):
                values = {name: value for name, value in log.items() if isinstance(value, (int, float))}
                rows.setdefault(values.pop("step"), {}).update(values)
    return rows


def stop():
    pass
