"""TensorBoard's own reader of event files. They hold 32 bits of a number."""

import ctypes
import os

PACKAGES = ["tensorboard"]


def start(folder):
    return {"TENSORBOARD_DIR": os.path.join(folder, "tensorboard")}


def expected(value):
    return ctypes.c_float(value).value


def read(run_dir, folder):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(os.path.join(folder, "tensorboard"), size_guidance={"scalars": 0}).Reload()
    rows = {}
    for name in events.Tags()["scalars"]:
        for event in events.Scalars(name):
            rows.setdefault(event.step, {})[name] = event.value
    return rows


def stop():
    pass
