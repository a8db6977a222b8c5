"""What the pages show runs: the notebook, each block of docs/python.md, and the script for `uv run`."""

import contextlib
import io
import re
import runpy
from pathlib import Path
from unittest import mock

import notebook
from helpers import ROOT, InFolder, small_runs


class Pages(InFolder):
    def test_the_notebook_gives_the_kinds_of_output_that_it_stores(self):
        scope = {}
        for number, cell in enumerate(notebook.cells(ROOT / "docs/first-run.ipynb")):
            if number == 0:
                self.assertEqual("".join(cell["source"]), "%pip install -q burnish")
                continue
            with self.subTest(cell=number), small_runs(), contextlib.redirect_stderr(io.StringIO()):
                self.assertEqual(notebook.run(cell, number, scope), notebook.stored(cell))

    def test_each_block_of_the_page_runs(self):
        page = (ROOT / "docs/python.md").read_text()
        blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
        self.assertEqual(len(blocks), page.count("\n```") // 2)
        Path("rows.jsonl").write_text('{"text": "1+1=2"}\n')
        scope, printed = {}, io.StringIO()
        for number, block in enumerate(blocks):
            cell = {"source": block.splitlines(True)}
            with small_runs(), contextlib.redirect_stderr(printed):
                notebook.run(cell, number, scope)
        self.assertEqual([row["score"] for row in scope["burnish"].reward.check(scope["compute_score"], scope["rows"])], [1, 0])

    def test_the_script_for_uv_trains_and_reports(self):
        script = ROOT / "examples/uv_script.py"
        self.assertRegex(script.read_text(), r'(?s)\A# /// script\n.*?dependencies = \["burnish"\]\n# ///\n')
        printed, said = io.StringIO(), io.StringIO()
        words = [str(script), "--steps", "2"]
        with small_runs(), mock.patch("sys.argv", words), contextlib.redirect_stdout(printed), contextlib.redirect_stderr(said):
            runpy.run_path(str(script), run_name="__main__")
        self.assertRegex(printed.getvalue(), r"acc/mean@1 0\.\d+ at step \d\n.*report\.html\n")
        self.assertIn("step 2/2  reward", said.getvalue())
