"""The version of the installed package."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("burnish")
except PackageNotFoundError:  # a source folder on the path
    __version__ = "unknown"
