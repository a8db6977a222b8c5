"""Runs a program, with the peak of its resident memory and its rows, each with its time."""
import json
import pathlib
import subprocess
import threading
import time


class Failed(Exception):
    """A program that failed; the message has the end of its output."""


class Run:
    """A program from start to end. `peak_gib` is the kernel's VmHWM of the process, read 20 times a second: the same for
    every program, and without what a parent had before it was replaced (which getrusage counts)."""

    def __init__(self, command, log, env=None, cwd=None):
        self.command, self.log, self.peak_gib = [str(word) for word in command], pathlib.Path(log), 0.0
        self.started = time.monotonic()
        self.log.parent.mkdir(parents=True, exist_ok=True)
        with open(self.log, "w") as out:
            self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT,
                                            env=env, cwd=cwd)
        self.watcher = threading.Thread(target=self._watch, daemon=True)
        self.watcher.start()

    def _watch(self):
        while self.process.poll() is None:
            try:
                for line in open(f"/proc/{self.process.pid}/status"):
                    if line.startswith("VmHWM:"):
                        self.peak_gib = max(self.peak_gib, int(line.split()[1]) / 2**20)
            except OSError:
                pass
            time.sleep(0.05)

    def wait(self, timeout):
        """Waits for its end, within some seconds."""
        try:
            self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.stop()
            raise Failed(f"{self.command[0]} was stopped after {timeout} seconds\n{self.last_words()}") from None
        self.check()
        return self

    def check(self):
        if self.process.returncode not in (None, 0):
            words = " ".join(self.command[:3])
            raise Failed(f"{words} … ended with status {self.process.returncode}\n{self.last_words()}")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()

    def last_words(self, lines=15):
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-lines:])

    def rows(self, path, timeout):
        """(seconds since the start, row) of each JSON line as it appears in a file, until the program ends."""
        path, done, end = pathlib.Path(path), 0, False
        while True:
            text = path.read_bytes() if path.exists() else b""
            whole = text.rfind(b"\n") + 1
            seconds = time.monotonic() - self.started
            for line in text[done:whole].splitlines():
                yield seconds, json.loads(line)
            done = max(done, whole)
            if end:
                return self.check()
            if seconds > timeout:
                self.stop()
                raise Failed(f"{self.command[0]} was stopped after {timeout} seconds\n{self.last_words()}")
            end = self.process.poll() is not None
            time.sleep(0.02)


def read_rows(path):
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]
