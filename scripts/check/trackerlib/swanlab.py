"""SwanLab's offline run, read by the reader that `swanlab sync` uses. Its cloud needs an account, so it is not checked."""

import glob
import os

PACKAGES = ["swanlab"]


def start(folder):
    return {"SWANLAB_MODE": "offline", "SWANLAB_LOG_DIR": os.path.join(folder, "swanlog")}


def read(run_dir, folder):
    from swanlab.proto.swanlab.record.v1.record_pb2 import Record
    from swanlab.sdk.internal.core_python.store import DataStoreReader

    rows = {}
    for path in sorted(glob.glob(os.path.join(folder, "swanlog", "run-*", "run-*.swanlab"))):
        reader = DataStoreReader()
        reader.open(path)
        for data in reader:
            record = Record()
            record.ParseFromString(data)
            # It logs the state of the machine, too.
            if record.HasField("scalar") and not record.scalar.key.startswith("__swanlab__."):
                rows.setdefault(record.scalar.step, {})[record.scalar.key] = record.scalar.value.number
        reader.close()
    return rows


def stop():
    pass
