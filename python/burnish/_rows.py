"""JSON lines of a run, also while the run writes them."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any, Dict, List

Row = Dict[str, Any]

# JSON has no such numbers, so a run writes them as words.
NOT_FINITE = {"NaN": float("nan"), "Infinity": float("inf"), "-Infinity": float("-inf")}


def number(value: Any) -> Any:
    """Returns the float that a word stands for, and any other value unchanged."""
    return NOT_FINITE.get(value, value) if isinstance(value, str) else value


def metrics_row(line: Row) -> Row:
    """Returns a line of metrics.jsonl as one flat row with its step."""
    data = line.get("data", {})
    return {"step": line.get("step"), **{name: number(value) for name, value in data.items()}}


def sample_row(line: Row) -> Row:
    numeric = ("score", "advantage", "log_probs", "advantages")
    return {name: numbers(value) if name in numeric else value for name, value in line.items()}


def numbers(value: Any) -> Any:
    return [number(item) for item in value] if isinstance(value, list) else number(value)


class Lines:
    """The whole lines of a file that grows. A last line without its end is left for later."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.offset = 0
        self.count = 0

    def new(self) -> List[Row]:
        """Returns the objects of the lines that were completed since the last call."""
        try:
            with open(self.path, "rb") as file:
                file.seek(self.offset)
                text = file.read()
        except FileNotFoundError:
            return []
        whole = text[: text.rfind(b"\n") + 1]
        self.offset += len(whole)
        rows = []
        for line in whole.splitlines():
            self.count += 1
            try:
                row = json.loads(line)
            except ValueError:
                row = None
            if isinstance(row, dict):
                rows.append(row)
            elif line.strip():
                warnings.warn(f"{self.path}:{self.count} is damaged and left out", stacklevel=3)
        return rows


def read(path: Path) -> List[Row]:
    """Returns all whole lines of a file; an empty list if the file does not exist."""
    return Lines(path).new()
