"""A run: the facts and rows in its folder."""

from __future__ import annotations

import html
import importlib
import json
import os
import re
from pathlib import Path
from typing import Any, Dict, List, Optional

from . import _rows
from ._program import PathLike, call
from ._rows import Row

INFO = "run.json"
METRICS = "metrics.jsonl"
SAMPLES = "samples.jsonl"
CHECKPOINT = re.compile(r"global_step_(\d+)")
TABLES = ("metrics", "samples", "settings", "checkpoints")

# Metrics that say most about a run of any kind, with the names that people use.
FIRST = {
    "critic/score/mean": "reward",
    "train/loss": "loss",
    "actor/entropy": "entropy",
    "response_length/mean": "length",
    "actor/grad_norm": "grad_norm",
    "train/grad_norm": "grad_norm",
}


class Run:
    """A run in a folder. Its files are read at each access, so a running one gives what it has written so far."""

    def __init__(self, path: PathLike) -> None:
        folder = Path(path)
        if CHECKPOINT.fullmatch(folder.name):
            folder = folder.parent
        if not any((folder / name).is_file() for name in (INFO, METRICS)):
            raise FileNotFoundError(
                f"no run in {folder}: it has neither {INFO} nor {METRICS}; `trainer runs ls FOLDER` lists runs"
            )
        self.path = folder

    @property
    def info(self) -> Row:
        """The facts of run.json, without the settings; empty if there is no such file."""
        return {name: value for name, value in self._record().items() if name != "config"}

    @property
    def state(self) -> str:
        """``running``, ``finished``, ``interrupted``, ``failed``, ``killed`` or ``unknown``, as ``trainer runs ls`` says."""
        for line in call(["runs", "ls", str(self.path), "--json"]).splitlines():
            found = json.loads(line)
            if Path(found["dir"]).resolve() == self.path.resolve():
                return str(found["state"])
        return "unknown"

    @property
    def metrics(self) -> List[Row]:
        """One row for each step that was logged: ``step`` and the metrics by their names."""
        return [_rows.metrics_row(line) for line in _rows.read(self.metrics_path)]

    @property
    def samples(self) -> List[Row]:
        """The responses that the run has recorded, with prompt, score, advantage and tokens."""
        return [_rows.sample_row(line) for line in _rows.read(self.path / SAMPLES)]

    @property
    def settings(self) -> List[Row]:
        """Every setting: ``key``, ``value``, and ``from``, the place that has set it."""
        return list(self._record().get("config", []))

    @property
    def checkpoints(self) -> List[Row]:
        """The checkpoints by step: ``step``, ``path``, and whether each is the ``best`` and the ``last``."""
        found = []
        best, last = self._step_in("best"), self._step_in("latest")
        for path in self.path.iterdir():
            name = CHECKPOINT.fullmatch(path.name)
            if name and path.is_dir():
                step = int(name[1])
                found.append({"step": step, "path": path, "best": step == best, "last": step == last})
        return sorted(found, key=lambda one: int(one["step"]))

    @property
    def metrics_path(self) -> Path:
        """The file of the metrics, which may be outside of the folder."""
        own, record = self.path / METRICS, self._record()
        if not record.get("metrics"):
            return own
        cwd = Path(record.get("cwd", ""))
        recorded = cwd / record["metrics"]
        folder = self.setting("trainer.default_local_dir")
        was_own = recorded == cwd / str(folder) / METRICS if folder else recorded.name == METRICS
        return own if was_own and (own.is_file() or not recorded.is_file()) else recorded

    def setting(self, key: str) -> Any:
        """Returns the value of a setting; None if the run has no such setting."""
        return next((one["value"] for one in self.settings if one.get("key") == key), None)

    def to_pandas(self, table: str = "metrics") -> Any:
        """Returns ``metrics``, ``samples``, ``settings`` or ``checkpoints`` as a data frame of pandas."""
        rows = self._table(table)
        return importlib.import_module("pandas").DataFrame(rows)

    def to_polars(self, table: str = "metrics") -> Any:
        """Returns ``metrics``, ``samples``, ``settings`` or ``checkpoints`` as a data frame of polars."""
        rows = self._table(table)
        columns: Dict[str, None] = {}
        for row in rows:
            columns.update(dict.fromkeys(row))
        data = {name: [row.get(name) for row in rows] for name in columns}
        frame = importlib.import_module("polars").DataFrame
        return frame({name: _plain(values) for name, values in data.items()}, strict=False)

    def report(self, output: Optional[PathLike] = None) -> Path:
        """Writes the page of ``trainer report`` to a file, by default report.html in the folder, and returns its path."""
        path = self.path / "report.html" if output is None else Path(output)
        call(["report", str(self.path), "--output", str(path)])
        return path

    def export(self, output: PathLike, *, best: bool = False, push_to_hub: Optional[str] = None) -> Path:
        """Copies the model of the last checkpoint, or of the best, to a folder that transformers loads.

        ``push_to_hub``: a name on the Hub, to which the folder is uploaded.
        """
        words = ["export", str(self.path), "--output", os.fspath(output)]
        words += ["--best"] if best else []
        call(words + ([] if push_to_hub is None else ["--push-to-hub", push_to_hub]))
        return Path(output)

    def __repr__(self) -> str:
        return f"Run({self._shown_path()!r})"

    def _repr_html_(self) -> str:
        info, rows = self.info, self.metrics
        done = f"step {info.get('step', '?')} of {info.get('total_steps', '?')}"
        head = f"<b>{html.escape(self._shown_path())}</b> {html.escape(str(info.get('state', '')))}, {done}"
        lines = []
        for name in leading(rows):
            values = [row[name] for row in rows if name in row]
            cells = "".join(f"<td>{_short(value)}</td>" for value in (values[0], values[-1]))
            lines.append(f"<tr><td>{html.escape(name)}</td>{cells}</tr>")
        table = f"<table><tr><th>metric</th><th>first</th><th>last</th></tr>{''.join(lines)}</table>" if lines else ""
        return f"<div>{head}</div>{table}"

    def _shown_path(self) -> str:
        """Returns the folder, relative to the working folder if it is below that."""
        try:
            return str(self.path.relative_to(Path.cwd()))
        except ValueError:
            return str(self.path)

    def _record(self) -> Row:
        try:
            text = (self.path / INFO).read_text(encoding="utf-8")
        except FileNotFoundError:
            return {}
        record: Row = json.loads(text)
        return record

    def _step_in(self, name: str) -> Optional[int]:
        try:
            return int((self.path / f"{name}_checkpointed_iteration.txt").read_text().strip())
        except (FileNotFoundError, ValueError):
            return None

    def _table(self, name: str) -> List[Row]:
        if name not in TABLES:
            raise ValueError(f"{name!r} is not a table of a run: write {', '.join(TABLES)}")
        rows: List[Row] = getattr(self, name)
        return rows


def leading(rows: List[Row]) -> List[str]:
    """Returns the names of the metrics that say most about these rows; those of validation come last."""
    names = dict.fromkeys(name for row in rows for name in row)
    validation = [name for name in names if name.startswith("val-core/") or name == "val/loss"]
    return [name for name in FIRST if name in names] + validation


def _short(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))


def _plain(values: List[Any]) -> List[Any]:
    """Returns the values of a column; those of mixed or nested types as text."""
    kinds = {type(value) for value in values if value is not None}
    if kinds <= {int, float} or (len(kinds) == 1 and kinds <= {str, bool}):
        return values
    return [value if value is None else str(value) for value in values]
