# Substitutes for packages that are not installed.

import importlib.util
import sys
import types


def is_installed(module):
    """Returns true if the package is installed. A folder that only has its name does not count."""
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.origin is not None


def lacking(name, contents):
    """Returns the `__getattr__` of a module with these contents, which refuses all other names."""

    def lacks(wanted):
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        there = "the substitute for this module only has " + ", ".join(contents) if contents else "there is no substitute for it"
        text = "%s.%s is missing: %s is not installed for %s, and %s"
        raise ImportError(text % (name, wanted, name.split(".")[0], sys.executable, there))

    return lacks


def provide(name, **contents):
    """Creates a module with these contents, which refuses all other names."""
    module = types.ModuleType(name)
    module.__path__ = []
    module.__dict__.update(contents, __getattr__=lacking(name, contents))
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
