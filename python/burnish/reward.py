"""Reward functions, called as the program calls them during training."""

from __future__ import annotations

import ast
import inspect
import json
import linecache
import os
import tempfile
from pathlib import Path
from typing import Any, Callable, List, Mapping, Optional, Sequence, Union

from ._overrides import Overrides, words_of
from ._program import PathLike, call
from ._rows import Row, number

# Columns that hold the one response of a row.
RESPONSE = ("response", "completion")
# Statements of a cell that a function may need.
KEPT = (ast.Import, ast.ImportFrom, ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)


def check(
    function: Union[Callable[..., Any], PathLike],
    rows: Union[Sequence[Mapping[str, Any]], PathLike],
    overrides: Optional[Overrides] = None,
) -> List[Row]:
    """Calls a reward function on rows with responses, in the process and with the arguments that training uses.

    ``function``: a function, ``"reward.py:compute_score"``, or the name of a built-in one. ``rows``: rows with ``response``
    (or ``completion``, or a list ``responses``), ``ground_truth`` and any other column, or a file of rows for
    ``trainer eval``. ``overrides``: settings of evaluation.yaml, such as ``{"reward.timeout": 5}``.

    Returns a row for each response: ``row``, ``response``, and either ``score``, with what the function reports, or
    ``error``, with its traceback. A score of None abstains.
    """
    with tempfile.TemporaryDirectory(prefix="burnish-") as folder:
        words = [_source(function, Path(folder)), "--json", "--rows"]
        if isinstance(rows, (str, os.PathLike)):
            words.append(os.fspath(rows))
        else:
            words.extend(_written(rows, Path(folder)))
        printed = call(["reward", "check", *words, *words_of(overrides)], also=(1,))
        # A cell has no path; its lines have numbers.
        printed = printed.replace(folder + os.sep, "")
    checked = [json.loads(line) for line in printed.splitlines()]
    return [{name: number(value) for name, value in one.items()} for one in checked]


def _source(function: Union[Callable[..., Any], PathLike], folder: Path) -> str:
    """Returns a function as ``FILE:NAME``. A function of a notebook goes to a file with the definitions of its cell."""
    if isinstance(function, (str, os.PathLike)):
        return os.fspath(function)
    name = getattr(function, "__qualname__", repr(function))
    if not inspect.isfunction(function) or "<" in name or "." in name:
        raise TypeError(f"{name} is not a function at the top level of a file or a cell, and training cannot find others")
    path = function.__code__.co_filename
    if not os.path.isfile(path):
        lines = linecache.getlines(path)
        if not lines:
            raise TypeError(f"the text of {name} is not known: write the function into a file and name it as 'FILE.py:{name}'")
        path = str(folder / "cell.py")
        Path(path).write_text(_definitions(lines), encoding="utf-8")
    return f"{path}:{name}"


def _definitions(lines: List[str]) -> str:
    """Returns the imports, functions, classes and constants of a cell, each at its line, without its other statements."""
    python = ["\n" if line.lstrip().startswith(("%", "!")) else line for line in lines]
    kept = ["\n"] * len(python)
    for statement in ast.parse("".join(python)).body:
        if isinstance(statement, KEPT) or _is_constant(statement):
            decorators = getattr(statement, "decorator_list", [])
            first = min(node.lineno for node in (statement, *decorators)) - 1
            kept[first : statement.end_lineno] = python[first : statement.end_lineno]
    return "".join(kept)


def _is_constant(statement: ast.stmt) -> bool:
    if not isinstance(statement, ast.Assign):
        return False
    try:
        ast.literal_eval(statement.value)
    except ValueError:
        return False
    return True


def _written(rows: Sequence[Mapping[str, Any]], folder: Path) -> List[str]:
    """Writes rows as `trainer eval` reads them; returns the file and its settings."""
    path = folder / "rows.jsonl"
    with open(path, "w", encoding="utf-8") as file:
        for i, row in enumerate(rows):
            file.write(json.dumps(_as_evaluated(dict(row), i), ensure_ascii=False) + "\n")
    known = any("data_source" in row for row in rows)
    return [str(path)] + ([] if known else ["data.data_source_key=null"])


def _as_evaluated(row: Row, i: int) -> Row:
    for name in RESPONSE:
        if "responses" not in row and name in row:
            row["responses"] = [row.pop(name)]
    if "responses" not in row:
        raise ValueError(f"row {i} has no response: it needs one of {', '.join(RESPONSE)} and responses, and has {', '.join(row)}")
    if "reward_model" not in row and "ground_truth" in row:
        row["reward_model"] = {"ground_truth": row["ground_truth"]}
    return row
