"""Runs the cells of a notebook in order, without Jupyter, and says which kinds of output each has."""

import ast
import contextlib
import io
import json
import linecache
from pathlib import Path


def cells(path):
    """Returns the code cells of a notebook."""
    return [cell for cell in json.loads(Path(path).read_text())["cells"] if cell["cell_type"] == "code"]


def stored(cell):
    """Returns the kinds of the outputs that a notebook has for a cell. Progress and logs are not results."""
    kinds = set()
    for output in cell["outputs"]:
        if output["output_type"] == "execute_result":
            kinds |= set(output["data"])
        elif output.get("name") == "stdout":
            kinds.add("stdout")
    return kinds


def run(cell, number, scope):
    """Runs a cell and returns the kinds of its outputs. Lines for IPython are left out."""
    source = "".join(line for line in cell["source"] if not line.startswith("%"))
    name = f"<cell {number}>"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    tree = ast.parse(source, name)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed, kinds = io.StringIO(), set()
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, name, "exec"), scope)
        value = last and eval(compile(ast.Expression(last.value), name, "eval"), scope)
    if value is not None:
        kinds |= {"text/plain"} | ({"text/html"} if hasattr(value, "_repr_html_") else set())
    return kinds | ({"stdout"} if printed.getvalue() else set())
