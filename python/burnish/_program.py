"""Finds the program and calls it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Optional, Sequence, Tuple, Union

from ._errors import TrainerError, message_in

PathLike = Union[str, "os.PathLike[str]"]

VARIABLE = "BURNISH_TRAINER"
NAME = "trainer"


def trainer_path() -> str:
    """Returns the program: ``$BURNISH_TRAINER``, else the one of this Python's scripts, else the first on ``PATH``.

    Raises ``TrainerError`` if there is none.
    """
    named = os.environ.get(VARIABLE)
    if named:
        found = shutil.which(named)
        if found is None:
            raise TrainerError(f"{VARIABLE}={named} is not a program: set it to the path of `{NAME}`, or remove it")
        return found
    folders = [sysconfig.get_path("scripts"), str(Path(sys.executable).parent)]
    for path in (*folders, None):
        found = shutil.which(NAME, path=path)
        if found is not None:
            return found
    raise TrainerError(
        f"there is no program `{NAME}` in {folders[0]} or on PATH: "
        f"`pip install burnish` brings it, or set {VARIABLE} to its path"
    )


def call(words: Sequence[str], *, also: Tuple[int, ...] = (), cwd: Optional[PathLike] = None) -> str:
    """Runs the program to its end and returns what it prints.

    ``also``: exit codes other than 0 that are not failures if the program has printed something.
    """
    done = subprocess.run(
        [trainer_path(), *words],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=cwd,
        encoding="utf-8",
        errors="replace",
    )
    if done.returncode != 0 and not (done.stdout and done.returncode in also):
        raise TrainerError(message_in(done.stderr), done.returncode)
    return done.stdout
