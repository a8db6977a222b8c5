# What `trainer self-check` asks a Python worker.

import importlib.util
import platform
import sys


def describe():
    """Describes the interpreter. NumPy is imported, because an installation can be broken."""
    version = None
    if importlib.util.find_spec("numpy"):
        import numpy

        version = numpy.__version__
    return {"path": sys.executable, "version": platform.python_version(), "numpy": version}
