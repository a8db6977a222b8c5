"""Starts the program for a training, and follows its rows."""

from __future__ import annotations

import atexit
import collections
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from pathlib import Path
from typing import Any, Callable, Deque, Dict, Iterator, List, Optional

from ._errors import LOG_LINE, Interrupted, TrainerError, message_in
from ._overrides import Overrides, refuse_keywords, words_of
from ._program import PathLike, trainer_path
from ._rows import Lines, Row, metrics_row
from ._run import Run
from ._shown import Progress

# The built-in configuration of each command. `run` takes a recipe, or a script of another library.
COMMANDS = {
    "rl": "ppo_trainer.yaml",
    "sft": "sft_trainer.yaml",
    "dpo": "dpo_trainer.yaml",
    "rm": "rm_trainer.yaml",
    "distill": "distill_trainer.yaml",
    "run": None,
}
INTERVAL = 0.1
# The program writes its folder and the steps already done into the file that this variable names.
FOLDER_FILE = "BURNISH_FOLDER_FILE"
LINES_KEPT = 1000


def train(
    config: Optional[PathLike] = None,
    overrides: Optional[Overrides] = None,
    *,
    command: str = "rl",
    cwd: Optional[PathLike] = None,
    on_row: Optional[Callable[[Row], None]] = None,
    show: bool = True,
    **refused: Any,
) -> Run:
    """Trains to the end and returns the run.

    ``config``: a recipe or the name of a built-in configuration, by default that of the command. ``overrides``: settings by
    their dotted names, ``{"algorithm.adv_estimator": "rloo"}``. ``command``: ``rl``, ``sft``, ``dpo``, ``rm``, ``distill``,
    or ``run`` for a script of another library (``@script.sh``). ``cwd``: the folder to work in. ``on_row`` is called with
    each row of metrics when it is logged. ``show``: show the progress and the program's warnings.

    Raises ``TrainerError`` with the program's message. Ctrl-C saves the run and raises ``Interrupted``.
    """
    refuse_keywords("train", refused)
    training = start(config, overrides, command=command, cwd=cwd, show=show)
    try:
        with _first_ctrl_c(training.interrupt):
            for row in training:
                if on_row is not None:
                    on_row(row)
    except Interrupted:
        raise
    except KeyboardInterrupt:  # a second Ctrl-C in on_row
        training.interrupt()
    return training.wait()


@contextlib.contextmanager
def _first_ctrl_c(action: Callable[[], None]) -> Iterator[None]:
    """Lets the first Ctrl-C do this action. A second one is Python's ``KeyboardInterrupt``.

    An exception can begin between any two instructions of the main thread, also where ``subprocess`` holds a lock that it then
    never releases. An action has no such place. A script with its own handler, or another thread, keeps what it has.
    """
    is_main = threading.current_thread() is threading.main_thread()
    if not is_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        yield
        return

    def handle(_number: int, _frame: Any) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        action()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def start(
    config: Optional[PathLike] = None,
    overrides: Optional[Overrides] = None,
    *,
    command: str = "rl",
    cwd: Optional[PathLike] = None,
    show: bool = False,
    **refused: Any,
) -> Training:
    """Starts a training and returns at once; the parameters are those of ``train``.

    Iterate over the result for the rows of metrics as they are logged, and call ``wait`` for the run.
    """
    refuse_keywords("start", refused)
    return Training(command_words(config, overrides, command), cwd, show)


def command_words(config: Optional[PathLike], overrides: Optional[Overrides], command: str) -> List[str]:
    """Returns the words after the name of the program."""
    if command not in COMMANDS:
        raise ValueError(f"command={command!r} is not a kind of training: write {', '.join(COMMANDS)}")
    source = COMMANDS[command] if config is None else os.fspath(config)
    if source is None:
        raise TypeError('command="run" needs a script or a recipe: train("@script.sh", command="run")')
    words = words_of(overrides)
    if command == "run":
        return ["run", source, *words]
    return ([] if command == "rl" else [command]) + ["--config", source, *words]


class Training:
    """A training in progress: iterate over it for its rows, then ``wait`` for its run."""

    def __init__(self, words: List[str], cwd: Optional[PathLike], show: bool) -> None:
        program = trainer_path()
        self.run: Optional[Run] = None
        self._temporary = tempfile.TemporaryDirectory(prefix="burnish-")
        self._folder_file = Path(self._temporary.name) / "folder.json"
        self._progress = Progress(show)
        self._lines: Optional[Lines] = None
        self._done_before = 0
        self._asked_to_stop = False
        self._stderr: Deque[str] = collections.deque(maxlen=LINES_KEPT)
        # In a new process group: Ctrl-C reaches this process alone, which passes it on. A second one ends the run at once.
        group: Dict[str, Any] = {"creationflags": 0x200} if os.name == "nt" else {"start_new_session": True}
        self._process = subprocess.Popen(
            [program, *words],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            cwd=cwd,
            env={**os.environ, FOLDER_FILE: str(self._folder_file)},
            encoding="utf-8",
            errors="replace",
            **group,
        )
        self._reader = threading.Thread(target=self._read_log, daemon=True)
        self._reader.start()
        atexit.register(self._end_with_interpreter)

    def __iter__(self) -> Iterator[Row]:
        """Yields each row of metrics when it is logged, until the program ends; then raises the errors of ``wait``.

        Ctrl-C asks the run to save and to stop.
        """
        ended = False
        while not ended:
            try:
                ended = self._process.poll() is not None
                rows = self._new_rows()
                if not rows and not ended:
                    time.sleep(INTERVAL)
            except KeyboardInterrupt:
                self.interrupt()
                continue
            for row in rows:
                self._progress.row(row)
                yield row
        self._end()

    def wait(self) -> Run:
        """Waits for the end and returns the run.

        Raises ``TrainerError`` if the program fails, and ``Interrupted`` if it was asked to stop.
        """
        for _ in self:
            pass
        return self._end()

    def interrupt(self) -> None:
        """Asks the run to save and to stop, as Ctrl-C does. A second call ends it at once."""
        self._asked_to_stop = True
        if self._process.poll() is None:
            self._process.send_signal(getattr(signal, "CTRL_BREAK_EVENT", signal.SIGINT))

    def _end(self) -> Run:
        self._reader.join()
        self._progress.end()
        self._temporary.cleanup()
        atexit.unregister(self._end_with_interpreter)
        code = self._process.returncode
        if code == 0 and self.run is not None:
            return self.run
        message = message_in("\n".join(self._stderr))
        if code == 0:
            raise TrainerError("nothing was trained, and there is no run to return", code)
        if self._asked_to_stop and code == 3:
            raise Interrupted(message, self.run)
        raise TrainerError(message, code, self.run)

    def _new_rows(self) -> List[Row]:
        if self._lines is None:
            try:
                found = json.loads(self._folder_file.read_text(encoding="utf-8"))
            except FileNotFoundError:
                return []
            self.run = Run(found["folder"])
            self._done_before = found["step"]
            self._progress.total = self.run.info.get("total_steps")
            self._lines = Lines(self.run.metrics_path)
        # A resumed run has the rows of the steps before it in the same file.
        rows = [metrics_row(line) for line in self._lines.new()]
        return [row for row in rows if self._done_before == 0 or row["step"] > self._done_before]

    def _read_log(self) -> None:
        """Keeps the end of the program's log for its error, and shows its warnings."""
        assert self._process.stderr is not None
        is_warning = False
        with self._process.stderr as log:
            for line in log:
                line = line.rstrip("\n")
                self._stderr.append(line)
                level = LOG_LINE.match(line)
                if level:
                    is_warning = level[1] == "WARN"
                elif line.startswith("error: "):
                    is_warning = False
                if is_warning:
                    self._progress.say(line)

    def _end_with_interpreter(self) -> None:
        """Saves the run if the interpreter ends before it."""
        self.interrupt()
        self._process.wait()
