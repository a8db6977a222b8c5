"""Damaged and missing files of a folder, and folders that a run cannot have for itself."""
import os
import pathlib
import shutil
import subprocess

from .bench import ROOT, Wrong, one_error


def damaged(path, damage, named=True):
    """Changes a file of the newest of two checkpoints, or next to them."""
    def check(bench):
        run = bench.copy(2)
        file = run / path
        damage(file)
        said = bench.resume(run, 2)
        if named and pathlib.Path(path).name not in said:
            raise Wrong(f"{path} is not named: {said[-600:]}")
        return ["resumed"]
    return check


def all_damaged(damage):
    def check(bench):
        run = bench.copy(2)
        for folder in run.glob("global_step_*"):
            damage(folder / bench.workload.file)
        before = sorted(p.name for p in run.iterdir())
        one_error(bench.run(run, 2), 2, "no checkpoint in", "optim.safetensors", "resume_mode=disable")
        if sorted(p.name for p in run.iterdir() if p.name != ".lock") != [name for name in before if name != ".lock"]:
            raise Wrong("the folder has changed")
        return ["error"]
    return check


def by_path(bench):
    run = bench.copy(2)
    missing(run / "global_step_2/data.json")
    command = [*bench.command(run, 2), "trainer.resume_mode=resume_path", f"trainer.resume_from_path={run / 'global_step_2'}"]
    one_error(subprocess.run(command, cwd=ROOT, env=bench.environment(), capture_output=True, text=True), 2, "data.json is missing")
    return ["error"]


def of_another(bench):
    """The folder belongs to another user, who lets nobody else write: an ordinary user gets an error before any work."""
    run = bench.copy(1)
    subprocess.run(["chmod", "-R", "a+rX,a-w", str(run)], check=True)
    os.chmod(bench.folder, 0o755)
    before = sorted((str(p), p.stat().st_mtime_ns) for p in run.rglob("*"))
    done = bench.run(run, 1, user=65534 if os.geteuid() == 0 else None)
    subprocess.run(["chmod", "-R", "u+w", str(run)], check=True)
    one_error(done, 2, str(run), "Permission denied")
    if before != sorted((str(p), p.stat().st_mtime_ns) for p in run.rglob("*")):
        raise Wrong("the folder has changed")
    bench.resume(run, 1)
    return ["error", "resumed"]


# Wraps the C library: the time of day jumps back and forth by up to 30 hours, and every lock is granted.
SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *at) {
    static int (*real)(clockid_t, struct timespec *);
    static unsigned calls;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, at);
    if (clock == CLOCK_REALTIME && getenv("BURNISH_CLOCK_JUMPS")) at->tv_sec += ((int)(calls++ * 7919 % 61) - 30) * 3600;
    return result;
}
int flock(int file, int operation) {
    static int (*real)(int, int);
    if (getenv("BURNISH_LOCKS_LIE")) return 0;
    if (!real) real = dlsym(RTLD_NEXT, "flock");
    return real(file, operation);
}
"""


def shim(bench):
    library = bench.folder / "shim.so"
    if not library.exists():
        subprocess.run(["cc", "-shared", "-fPIC", "-x", "c", "-o", str(library), "-", "-ldl"], input=SHIM, text=True, check=True)
    return {"LD_PRELOAD": str(library)}


def clock_jumps(bench):
    run = bench.copy(1)
    bench.insist(bench.run(run, 1, BURNISH_CLOCK_JUMPS="1", **shim(bench)))
    bench.resume(run, 1)
    return ["resumed"]


def lying_locks(bench):
    """The file system grants a lock to everybody (a network file system without locks): the second process on the host is refused."""
    return shared_folder(bench, BURNISH_LOCKS_LIE="1", **shim(bench))


def shared_folder(bench, **environment):
    run = bench.copy(1)
    first = subprocess.Popen(bench.command(run, 1, 1000000), cwd=ROOT, env=bench.environment(**environment), stderr=subprocess.DEVNULL)
    try:
        before = (run / "metrics.jsonl").stat().st_size
        while (run / "metrics.jsonl").stat().st_size <= before:
            pass
        one_error(bench.run(run, 1, **environment), 2, "another process is training in")
    finally:
        first.kill()
        first.wait()
    return ["error"]


def truncate(to):
    return lambda file: os.truncate(file, to(file.stat().st_size))


def flip(where):
    def damage(file):
        data = bytearray(file.read_bytes())
        data[where(len(data))] ^= 0x10
        file.write_bytes(data)
    return damage


def missing(file):
    file.unlink()


def put(text):
    return lambda file: file.write_text(text)


def rows(bench):
    """(name, description, [check, …])"""
    newest = bench.base[2] / "global_step_2"
    files = sorted(str(p.relative_to(bench.base[2])) for p in newest.rglob("*") if p.is_file())
    content = [f for f in files if not f.endswith("manifest.json")]
    half, less, none = truncate(lambda n: n // 2), truncate(lambda n: n - 1), truncate(lambda n: 0)
    ends = [flip(lambda n: 0), flip(lambda n: n // 2), flip(lambda n: n - 1)]
    tracker = "latest_checkpointed_iteration.txt"
    found = [
        ("truncated", f"each file of the newest checkpoint cut: by a byte, to half, to nothing ({len(files)} files)",
         # The manifest's last byte is a line break, which it does not need.
         [damaged(f, cut, f in content or cut is not less) for f in files for cut in (less, half, none)]),
        ("flipped", "one bit of each file of the newest checkpoint flipped: at its start, middle and end",
         [damaged(f, flipped, f in content) for f in files for flipped in ends]),
        ("missing", "each file of the newest checkpoint missing", [damaged(f, missing) for f in files]),
        ("tracker", f"{tracker} missing, empty, not a number, an unknown step",
         [damaged(tracker, d) for d in (missing, put(""), put("\xff"), put("77"))]),
        ("all", "all checkpoints damaged: cut, flipped, missing", [all_damaged(d) for d in (half, ends[1], missing)]),
        ("path", "the checkpoint of resume_from_path damaged", [by_path]),
        ("shared", "a second process in the same folder", [shared_folder]),
        ("read-only", "a folder in which an ordinary user may not write", [of_another]),
    ]
    if shutil.which("cc"):
        found.append(("clock", "the clock of the day jumps back and forth by hours", [clock_jumps]))
        found.append(("locks", "a file system that grants every lock, and a second process", [lying_locks]))
    return found
