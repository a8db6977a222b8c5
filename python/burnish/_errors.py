"""Errors of the program as exceptions."""

from __future__ import annotations

import re
from typing import Any, List, Optional

LOG_LINE = re.compile(r"^\s*(INFO|WARN|DEBUG|TRACE) ")
LONGEST_TAIL = 20


class TrainerError(RuntimeError):
    """The program has refused its input (``code`` 2) or failed (another ``code``).

    ``message`` is the program's own; ``run`` is the ``Run`` that it was working on, or ``None``.
    """

    def __init__(self, message: str, code: Optional[int] = None, run: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.run = run

    def _render_traceback_(self) -> List[str]:
        """The message without a traceback, which IPython shows."""
        return [f"TrainerError: {self.message}"]


class Interrupted(KeyboardInterrupt):
    """Ctrl-C has ended the training. ``run``, a ``Run``, is saved, and the same call resumes it."""

    def __init__(self, message: str, run: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.run = run

    def _render_traceback_(self) -> List[str]:
        return [f"Interrupted: {self.message}"]


def message_in(stderr: str) -> str:
    """Returns the message with which the program ended: from its last line that begins with ``error: ``."""
    lines = stderr.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("error: ")]
    if starts:
        return "\n".join(lines[starts[-1] :])[len("error: ") :].strip()
    others = [line for line in lines if line.strip() and not LOG_LINE.match(line)]
    return "\n".join(others[-LONGEST_TAIL:]).strip() or "the program ended without a message"
