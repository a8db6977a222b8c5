"""The parts of gpu-check, one file each. A part is a function that yields what it found, as gpu/common.py makes it."""
