"""One module per tracker, for check_trackers.py.

PACKAGES: what pip must have installed. start(folder) -> the environment of the run; a server or a stand-in for one, where one is
needed, listens on loopback. read(run_dir, folder) -> {step: {name: value}}, by the tracker's real client, under our names.
expected(value), where there is one: what a value must read back as, if that is not the value itself. stop().
"""
