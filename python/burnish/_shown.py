"""The progress of a training: a bar in notebooks, otherwise one line."""

from __future__ import annotations

import html
import importlib
import sys
from typing import Any, Optional

from ._rows import Row
from ._run import FIRST, leading


class Progress:
    """Shows each row. In a terminal a row replaces the one before it."""

    def __init__(self, shown: bool) -> None:
        self.shown = shown
        self.is_notebook = "ipykernel" in sys.modules
        self.cell: Any = None
        self.is_terminal = sys.stderr.isatty()
        self.width = 0
        self.total: Optional[int] = None

    def row(self, row: Row) -> None:
        if not self.shown:
            return
        text = line(row, self.total)
        if self.is_notebook:
            done = f'<progress value="{row["step"]}" max="{self.total or 1}"></progress>'
            self._show(_Html(f"{done} <code>{html.escape(text)}</code>", text))
        elif self.is_terminal:
            sys.stderr.write("\r" + text.ljust(self.width))
            sys.stderr.flush()
            self.width = len(text)
        else:
            print(text, file=sys.stderr, flush=True)

    def _show(self, page: _Html) -> None:
        """Shows a page in the output of the notebook's cell, in place of the one before it."""
        if self.cell is None:
            self.cell = importlib.import_module("IPython.display").display(page, display_id=True)
        else:
            self.cell.update(page)

    def say(self, text: str) -> None:
        """Prints a line of the program's log above the progress."""
        if self.shown:
            self.end()
            print(text, file=sys.stderr, flush=True)

    def end(self) -> None:
        if self.width:
            print(file=sys.stderr)
            self.width = 0


class _Html:
    """Text that a notebook shows as HTML, and as plain text where it cannot."""

    def __init__(self, markup: str, text: str) -> None:
        self.markup, self.text = markup, text

    def _repr_html_(self) -> str:
        return self.markup

    def __repr__(self) -> str:
        return self.text


def line(row: Row, total: Optional[int]) -> str:
    """Returns a row as one line: step and the metrics that say most."""
    parts = [f"step {row['step']}/{total}" if total else f"step {row['step']}"]
    return "  ".join(parts + [f"{FIRST.get(name, name)} {row[name]:.4g}" for name in leading([row])])
