"""A run on several ranks under Open MPI's mpirun: its processes, its messages and its end."""
import os
import signal
import subprocess
import threading
import time

from .bench import MPIRUN, ROOT, Wrong


class Job:
    """A run that is going on. `before[rank]` are words in front of the program of that rank."""

    def __init__(self, bench, run, keep, ranks=2, settings=(), before=(), **environment):
        program, self.bench, self.fault = [*bench.program(run, keep), *settings], bench, time.monotonic()
        words = [["-n", "1", *(before[rank] if rank < len(before) else []), *program, ":"] for rank in range(ranks)]
        command = [*MPIRUN, *[word for rank in words for word in rank][:-1]]
        self.process = subprocess.Popen(command, cwd=ROOT, env=bench.environment(RUST_LOG="warn,burnish=debug", **environment),
                                        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, errors="replace")
        self.lines, self.pids = [], {}
        self.reader = threading.Thread(target=lambda: self.lines.extend(self.process.stderr), daemon=True)
        self.reader.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """Leaves no process, not even a stopped one."""
        if self.process.poll() is None:
            for pid in self.pids.values():
                self.send(pid, signal.SIGKILL)
            self.process.kill()
        self.process.wait()

    def pid(self, rank):
        """The process of a rank, as soon as there is one; `None` if the run ends before."""
        own = f"OMPI_COMM_WORLD_RANK={rank}".encode()
        while rank not in self.pids and self.process.poll() is None:
            try:
                with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children") as children:
                    for child in children.read().split():
                        with open(f"/proc/{child}/environ", "rb") as environ:
                            if own in environ.read().split(b"\0"):
                                self.pids[rank] = int(child)
            except OSError:
                pass
            time.sleep(0.001)
        return self.pids.get(rank)

    def find(self):
        """Notes the processes of all ranks."""
        for rank in range(2):
            self.pid(rank)

    def wait_for(self, text):
        """Waits for a message."""
        deadline = time.monotonic() + 120
        while not any(text in line for line in list(self.lines)):
            if self.process.poll() is not None or time.monotonic() > deadline:
                raise Wrong(f"no message {text}: {self.text()[-800:]}")
            time.sleep(0.001)

    @staticmethod
    def send(pid, name):
        try:
            os.kill(pid, name)
        except ProcessLookupError:
            pass

    def signal(self, rank, name):
        """Sends a signal to one rank; from now on the time to the end counts."""
        self.fault = time.monotonic()
        if self.pid(rank):
            self.send(self.pid(rank), name)

    def text(self):
        return "".join(self.lines)

    def end(self, seconds, codes):
        """Waits for the end of all processes, for so many seconds after the fault; one of these exit codes is right."""
        try:
            self.process.wait(max(0.0, self.fault + seconds - time.monotonic()))
        except subprocess.TimeoutExpired as late:
            raise Wrong(f"still runs {seconds} s after the fault: {self.text()[-800:]}") from late
        self.bench.slowest = max(self.bench.slowest, time.monotonic() - self.fault)
        self.reader.join()
        deadline = time.monotonic() + 5
        while any(os.path.exists(f"/proc/{pid}") for pid in self.pids.values()):
            if time.monotonic() > deadline:
                raise Wrong("a process is left")
            time.sleep(0.01)
        if codes is not None and self.process.returncode not in codes:
            raise Wrong(f"exit code {self.process.returncode} instead of {codes}: {self.text()[-1200:]}")
        return self.process.returncode

    def error(self, *parts):
        """There is one error with all `parts`, and no panic."""
        lines = [line for line in self.lines if line.startswith("error:")]
        if len(lines) != 1 or "panicked" in self.text():
            raise Wrong(f"{len(lines)} errors: {self.text()[-1200:]}")
        for part in parts:
            if part not in lines[0]:
                raise Wrong(f"the error does not name {part}: {lines[0]}")
