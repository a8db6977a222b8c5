"""The parts of gpu-check, one file each. A part is a function that yields findings of gpu/common.py."""
