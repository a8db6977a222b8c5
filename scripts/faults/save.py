"""Faults inside the system calls of a save and of the beginning, injected by strace, and signals in each phase."""
import collections
import pathlib
import re
import shutil
import signal
import subprocess

from .bench import ROOT, Wrong, one_error, sound_ones

# The main thread's file-system calls, without reads, which change nothing.
CALLS = ["openat", "write", "writev", "pwrite64", "copy_file_range", "sendfile", "fsync", "fdatasync", "mkdir", "rename",
         "renameat", "renameat2", "unlink", "unlinkat", "rmdir", "ftruncate", "fchmod"]
WRITING = ["openat", "write", "writev", "pwrite64", "copy_file_range", "sendfile", "fsync", "fdatasync", "mkdir", "rename",
           "renameat", "renameat2", "ftruncate"]
REMOVING = ["unlink", "unlinkat", "rmdir"]


def calls_on(bench, keep, first):
    """The main thread's calls on the run's folder from the row of step `first` to the next one, each as (call, its number, text)."""
    run, log = bench.copy(keep), bench.folder / "trace.txt"
    done = bench.run(run, 1, prefix=["strace", "-y", "-s", "0", "-e", "trace=" + ",".join(f"?{c}" for c in CALLS), "-o", str(log)])
    bench.insist(done)
    lines = log.read_text().splitlines()
    seen, found, rows = collections.Counter(), [], 0
    for text in lines:
        call = re.match(r"(\w+)\(", text)
        if not call:
            continue
        seen[call[1]] += 1
        if call[1] == "write" and "metrics.jsonl>" in text:
            rows += 1
        if str(run) in text and rows == first:
            found.append((call[1], seen[call[1]], text.strip()))
    if len(found) < 12:
        raise Wrong(f"only {len(found)} calls were seen")
    shutil.rmtree(run)
    return found


def injected(bench, keep, call, number, what):
    """A run whose main thread (and no other thread, nor a process of tools) meets a fault at one call; its remaining files, before it runs again."""
    run = bench.copy(keep)
    done = bench.run(run, 1, prefix=["strace", "-qq", "-e", f"trace={call}", "-e", f"inject={call}:{what}:when={number}", "-o", "/dev/null"])
    if keep and not sound_ones(run):
        raise Wrong("no whole checkpoint is left")
    return run, done


def kill_at_call(keep, call, number, _):
    def check(bench):
        run, done = injected(bench, keep, call, number, "signal=SIGKILL")
        if done.returncode == 0:
            raise Wrong("the run was not killed")
        bench.resume(run, 1)
        return ["resumed"]
    return check


def error_at_call(error):
    def point(keep, call, number, _):
        def check(bench):
            run, done = injected(bench, keep, call, number, f"error={error}")
            outcome = []
            if done.returncode != 0:
                one_error(done, 1 if keep else done.returncode, str(bench.folder))
                if run.exists() and [p.name for p in run.iterdir() if p.name.startswith(".tmp-")]:
                    raise Wrong("staged files are left")
                outcome = ["error"]
            bench.resume(run, 1)
            return outcome + ["resumed"]
        return check
    return point


def in_phase(phase, signals, code):
    """Signals as soon as a phase of step 2 begins."""
    def check(bench):
        run = bench.copy(1)
        process = subprocess.Popen(bench.command(run, 1), cwd=ROOT, env=bench.environment(RUST_LOG="warn,burnish=debug"),
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        text = []
        for line in process.stderr:
            text.append(line)
            if f"phase {phase}" in line:
                for name in signals:
                    process.send_signal(name)
                break
        text.append(process.stderr.read())
        ended = process.wait(timeout=300)
        if ended not in code:
            raise Wrong(f"exit code {ended}: {''.join(text)[-600:]}")
        if ended == 3 and "interrupted after step" not in "".join(text):
            raise Wrong("exit code 3 without a word")
        if not sound_ones(run):
            raise Wrong("no whole checkpoint is left")
        bench.resume(run, 1, said="".join(text))
        return ["resumed"]
    return check


def read_only(bench):
    """From the save of step 2 on, the file system takes no new name."""
    number = next(n for call, n, _ in bench.calls if call == "mkdir")
    run, done = injected(bench, 1, "mkdir", f"{number}+", "error=EROFS")
    one_error(done, 1, str(bench.folder), "Read-only file system")
    bench.resume(run, 1)
    return ["error", "resumed"]


def kinds(calls):
    counts = collections.Counter(call for call, *_ in calls)
    return ", ".join(f"{n} {call}" for call, n in counts.most_common())


def rows(bench):
    """(name, description, [check, …])"""
    found = []
    if shutil.which("strace"):
        bench.calls = calls_on(bench, 1, 1)
        for name, when, keep, calls in (("save", "a save", 1, bench.calls), ("start", "the beginning", None, calls_on(bench, None, 0))):
            found.append((f"kill-{name}", f"SIGKILL at each file-system call of {when} ({kinds(calls)})", [kill_at_call(keep, *c) for c in calls]))
            writing = [c for c in calls if c[0] in WRITING and "O_RDONLY" not in c[2]]
            for error, words in (("ENOSPC", "the disk is full"), ("EIO", "the disk fails")):
                found.append((f"{error}-{name}", f"{error} ({words}) at each call of {when} that writes ({kinds(writing)})",
                              [error_at_call(error)(keep, *c) for c in writing]))
            removing = [c for c in calls if c[0] in REMOVING or (c[0] == "openat" and "/.tmp-" in c[2] and "O_DIRECTORY" in c[2])]
            if removing:
                found.append((f"EIO-remove-{name}", f"EIO at each call of {when} that removes ({kinds(removing)})",
                              [error_at_call("EIO")(keep, *c) for c in removing]))
        found.append(("EROFS", "the folder becomes read-only before a save", [read_only]))
    killed, stopped, phases = (-signal.SIGKILL,), (3,), bench.workload.phases
    found.append(("kill-phase", f"SIGKILL in each phase ({', '.join(phases)})", [in_phase(p, [signal.SIGKILL], killed) for p in phases]))
    for name, number in (("SIGTERM", signal.SIGTERM), ("SIGINT", signal.SIGINT)):
        found.append((name, f"{name} in each phase", [in_phase(p, [number], stopped) for p in phases]))
    twice = (3, 128 + signal.SIGTERM)
    return found + [("twice", "SIGTERM twice in each phase", [in_phase(p, [signal.SIGTERM] * 2, twice) for p in phases])]
