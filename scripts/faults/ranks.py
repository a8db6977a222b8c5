"""Faults of one of two ranks: killed, stopped, starved, without memory, files or disk, and signals at one of them."""
import itertools
import os
import pathlib
import random
import shutil
import signal
import subprocess
import threading
import time

from .bench import Wrong
from .job import Job

# Seconds in which all processes must end after the loss of one, a signal or an error; the machine may be busy.
SOON = 15
# The wait for a silent rank in these runs, and what the first of the others may wait longer.
PATIENCE, TURN = 5, 5
BOTH = (0, 1)


def next_ranks(bench):
    """The number of ranks on which the next run resumes."""
    bench.resumed = getattr(bench, "resumed", 0) + 1
    return [2, 1, 3][bench.resumed % 3]


def resumed(bench, run, *outcome, said=""):
    bench.resume(run, 1, next_ranks(bench), said)
    return [*outcome, "resumed"]


def whole(bench, run, *outcome):
    """The run has reached its end in spite of the fault."""
    bench.compare(run)
    return [*outcome, "resumed"]


def killed(phase, rank):
    def check(bench):
        run = bench.copy(1)
        with Job(bench, run, 1) as job:
            job.find()
            job.wait_for(f"phase {phase}")
            job.signal(rank, signal.SIGKILL)
            job.end(SOON, (137,))
            if f"rank {rank}" not in job.text():
                raise Wrong(f"nobody names rank {rank}: {job.text()[-800:]}")
        return resumed(bench, run)
    return check


def killed_at(part, rank, fresh):
    """SIGKILL after this part of the time that an undisturbed run takes."""
    def check(bench):
        run = bench.copy(None if fresh else 1)
        with Job(bench, run, 1) as job:
            job.pid(rank)
            time.sleep(part * bench.length)
            job.signal(rank, signal.SIGKILL)
            code = job.end(SOON, None)
        return whole(bench, run) if code == 0 else resumed(bench, run)
    return check


def hangs(phase, rank):
    def check(bench):
        run = bench.copy(1)
        with Job(bench, run, 1, settings=[f"{bench.workload.timeout}={PATIENCE}"]) as job:
            job.find()
            job.wait_for(f"phase {phase}")
            job.signal(rank, signal.SIGSTOP)
            job.end(PATIENCE + TURN + SOON, (75,))
            job.error(f"rank {rank}")
        return resumed(bench, run, "error")
    return check


def pauses(phase, rank):
    """A rank pauses for less than the others wait."""
    def check(bench):
        run = bench.copy(1)
        with Job(bench, run, 1, settings=[f"{bench.workload.timeout}={2 * PATIENCE}"]) as job:
            job.find()
            job.wait_for(f"phase {phase}")
            job.signal(rank, signal.SIGSTOP)
            time.sleep(PATIENCE / 2)
            job.signal(rank, signal.SIGCONT)
            job.end(60, (0,))
        return whole(bench, run)
    return check


def starves(rank):
    """A rank gets a tenth of its processor."""
    def check(bench):
        run = bench.copy(1)
        with Job(bench, run, 1, settings=[f"{bench.workload.timeout}={2 * PATIENCE}"]) as job:
            job.find()

            def starve():
                while job.process.poll() is None:
                    for name, seconds in ((signal.SIGSTOP, 0.18), (signal.SIGCONT, 0.02)):
                        job.send(job.pids[rank], name)
                        time.sleep(seconds)
                job.send(job.pids[rank], signal.SIGCONT)
            threading.Thread(target=starve, daemon=True).start()
            job.end(400, (0,))
        return whole(bench, run)
    return check


def asked(name, phase, rank):
    """One rank alone gets a signal that asks it to stop."""
    def check(bench):
        run = bench.copy(1)
        with Job(bench, run, 1) as job:
            job.find()
            job.wait_for(f"phase {phase}")
            job.signal(rank, name)
            job.end(SOON, (3,))
            if "interrupted after step" not in job.text():
                raise Wrong(f"exit code 3 without a word: {job.text()[-800:]}")
        return resumed(bench, run, said=job.text())
    return check


def limited(limit, phase, rank):
    """A rank gets no more memory, or opens no more files."""
    def check(bench):
        run = bench.copy(1)
        with Job(bench, run, 1) as job:
            job.find()
            job.wait_for(f"phase {phase}")
            pid = job.pid(rank)
            pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[0])
            most = pages * os.sysconf("SC_PAGE_SIZE") if limit == "as" else 4
            job.fault = time.monotonic()
            subprocess.run(["prlimit", "--pid", str(pid), f"--{limit}={most}"], check=True)
            code = job.end(4 * SOON, None)
            if code == 0:
                return whole(bench, run)
            if limit == "nofile":
                job.error()
        return resumed(bench, run, *(["error"] if limit == "nofile" else []))
    return check


class SmallDisk:
    """A file system of so many bytes in memory."""

    def __init__(self, folder, size):
        self.folder, self.at_first = folder, size

    def __enter__(self):
        self.folder.mkdir(exist_ok=True)
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={self.at_first}", "faults", str(self.folder)], check=True)
        return self

    def size(self, size):
        subprocess.run(["mount", "-o", f"remount,size={size}", str(self.folder)], check=True)

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", str(self.folder)], check=True)


def full_disk(part):
    """The disk of the run's folder fills during a step, up to room for this part of a further checkpoint."""
    def check(bench):
        run = bench.copy(None)
        with SmallDisk(run, "1G") as disk:
            shutil.copytree(bench.base[1], run, dirs_exist_ok=True)
            step = sum(p.stat().st_blocks * 512 for p in (run / "global_step_1").rglob("*"))
            with Job(bench, run, 1) as job:
                job.find()
                job.wait_for("phase " + bench.workload.phases[0])
                disk.size(sum(p.stat().st_blocks * 512 for p in run.rglob("*")) + int(part * step) + 8192)
                job.fault = time.monotonic()
                job.end(SOON, (1,))
                job.error(str(bench.folder))
            disk.size(1 << 30)
            return resumed(bench, run, "error")
    return check


def no_disk(bench):
    """The disk of the run's folder has no room for a checkpoint from the start on."""
    run = bench.copy(None)
    with SmallDisk(run, "1G") as disk:
        shutil.copytree(bench.base[1], run, dirs_exist_ok=True)
        disk.size(sum(p.stat().st_blocks * 512 for p in run.rglob("*")) + 8192)
        with Job(bench, run, 1) as job:
            job.find()
            job.end(60, (2,))
            job.error("trainer.default_local_dir", "are free there")
        disk.size(1 << 30)
        return resumed(bench, run, "error")


def full_temporary_folder(rank):
    """The folder for temporary files of one rank is full."""
    def check(bench):
        run, place = bench.copy(1), bench.copy(None)
        with SmallDisk(place, 4096):
            with open(place / "full", "wb", buffering=0) as file:
                file.write(bytes(4096))
            before = [["env", f"TMPDIR={place}"] if one == rank else [] for one in BOTH]
            with Job(bench, run, 1, before=before) as job:
                job.find()
                if job.end(120, (0, 1, 2)) == 0:
                    return whole(bench, run)
                job.error()
        return resumed(bench, run, "error")
    return check


def unseen(bench):
    """The folder of the run is another one on rank 1."""
    run = bench.copy(1)
    other = ["unshare", "-m", "sh", "-c", f"mount -t tmpfs none {run} && exec \"$@\"", "sh"]
    with Job(bench, run, 1, before=[[], other]) as job:
        job.find()
        job.end(60, (2,))
        job.error("rank 1")
    return resumed(bench, run, "error")


def shared(bench):
    """A second job in the same folder."""
    run = bench.copy(1)
    with Job(bench, run, 1) as first:
        first.find()
        first.wait_for("phase ")
        first.signal(1, signal.SIGSTOP)
        with Job(bench, run, 1) as second:
            second.find()
            second.end(60, (2,))
            second.error("another process is training in")
        first.signal(1, signal.SIGCONT)
        first.end(120, (0,))
    return whole(bench, run, "error")


def rows(bench):
    """(name, description, [check, …])"""
    run, start = bench.copy(1), time.monotonic()
    bench.resume(run, 1, 2)
    bench.length = time.monotonic() - start
    chance, phases = random.Random(7), bench.workload.phases
    places = list(itertools.product(phases, BOTH))
    asks = [signal.SIGUSR1, signal.SIGTERM, signal.SIGINT, signal.SIGHUP]
    found = [
        ("kill-phase", "SIGKILL at one rank in each phase", [killed(*place) for place in places]),
        ("kill-random", "SIGKILL at one rank at random moments",
         [killed_at(chance.random(), rank, fresh) for _ in range(10) for rank in BOTH for fresh in (False, True)]),
        ("hang", "a rank stops for good in each phase", [hangs(*place) for place in places]),
        ("pause", "a rank pauses for 2.5 s in each phase", [pauses(*place) for place in places]),
        ("starve", "a rank gets a tenth of its processor", [starves(rank) for rank in BOTH]),
        ("signal", "SIGUSR1, SIGTERM, SIGINT or SIGHUP at one rank in each phase", [asked(name, *place) for place in places for name in asks]),
        ("memory", "a rank gets no more memory, from each phase on", [limited("as", *place) for place in places]),
        ("files", "a rank opens no more files, from each phase on", [limited("nofile", *place) for place in places]),
        ("shared", "a second job in the same folder", [shared]),
    ]
    if os.geteuid() == 0:
        found += [
            ("full", "the disk fills during a step: room for 0 to 9 tenths of a checkpoint", [full_disk(part / 10) for part in range(10)]),
            ("no-disk", "the disk is full from the start on", [no_disk]),
            ("temporary", "the folder for temporary files of one rank is full", [full_temporary_folder(rank) for rank in BOTH]),
            ("unseen", "rank 1 does not see the run's folder", [unseen]),
        ]
    return found
