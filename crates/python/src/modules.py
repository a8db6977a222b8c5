# Modules that stand in for packages which are not installed.

import importlib.util
import sys
import types


def is_installed(module):
    """True if there is such a package: a folder that only has its name is none."""
    spec = importlib.util.find_spec(module)
    return spec is not None and spec.origin is not None


def lacking(name, contents):
    """What a module with these contents says of any other name: that it is not among them."""

    def lacks(wanted):
        if wanted.startswith("__"):
            raise AttributeError(wanted)
        there = ", ".join(contents) or "no names"
        raise ImportError(
            "%s.%s is not here: %s is not installed for %s, and what stands in for this module of it has %s"
            % (name, wanted, name.split(".")[0], sys.executable, there)
        )

    return lacks


def provide(name, **contents):
    """Makes a module that has these contents, and says of any other that it is not among them."""
    module = types.ModuleType(name)
    module.__path__ = []
    module.__dict__.update(contents, __getattr__=lacking(name, contents))
    sys.modules[name] = module
    parent, _, own = name.rpartition(".")
    if parent:
        setattr(sys.modules[parent], own, module)
