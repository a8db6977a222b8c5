"""The arithmetic task's rule, until a file appears; from then on it does what reward files do when something is wrong."""

import ctypes
import os
import subprocess
import time


def compute_score(data_source, solution_str, ground_truth, extra_info=None, does="nothing", since=None):
    if since and os.path.exists(since):
        result = globals()[does]()
        if result is not None:
            return result
    return float(solution_str.strip() == ground_truth)


def nothing():
    pass


def raises():
    answers = {"a": 1}
    return answers["missing key"]


def wrong_type():
    return "correct"


def no_score():
    return {"reward": 1.0}


def not_a_number():
    return float("nan")


def hangs():
    time.sleep(600)


def hangs_in_c():
    ctypes.CDLL(None).sleep(600)


def memory_bomb():
    return len(bytearray(1 << 30) * 64)


def exits():
    os._exit(7)


def forks_and_exits():
    if os.fork() == 0:
        time.sleep(600)
    os._exit(0)


def crashes():
    ctypes.string_at(0)


def prints():
    """Not a failure: whatever it prints, and wherever, is no answer."""
    print('{"scores": [[1, {}, null, {}]]}', flush=True)
    os.write(1, b'{"error": "no"}\n')
    subprocess.run(["echo", "from a child"])
    ctypes.CDLL(None).puts(b"from C")
