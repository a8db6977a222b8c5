"""One module per tracker, for check_trackers.py.

PACKAGES: required pip packages. start(folder) -> the environment of the run; a server or a stub of one, if needed, listens on
loopback. read(run_dir, folder) -> {step: {name: value}}, by the tracker's real client, under our names. expected(value),
optional: the expected value after reading, if it differs from the value itself. stop().
"""
