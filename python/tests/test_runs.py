"""Folders of runs in every condition: live, damaged, moved, and without a record."""

import json
import math
import warnings

from helpers import InFolder

import burnish
from burnish._rows import Lines


class Folders(InFolder):
    def test_a_half_written_line_is_left_for_later(self):
        path = self.folder / "metrics.jsonl"
        path.write_text('{"step":0,"data":{"a":1.0}}\n{"step":1,"da')
        run = burnish.Run(self.folder)
        self.assertEqual(run.metrics, [{"step": 0, "a": 1.0}])
        lines = Lines(path)
        self.assertEqual(len(lines.new()), 1)
        self.assertEqual(lines.new(), [])
        with open(path, "a") as file:
            file.write('ta":{}}\n{"step":2')
        self.assertEqual(lines.new(), [{"step": 1, "data": {}}])
        self.assertEqual((run.info, run.settings, run.samples, run.checkpoints), ({}, [], [], []))

    def test_words_are_numbers_and_damaged_lines_are_named(self):
        (self.folder / "metrics.jsonl").write_text('{"step":1,"data":{"x":"NaN","y":"-Infinity"}}\n\x00\x00\n{"step":3,"data":{}}\n')
        line = {"step": 1, "kind": "train", "response": "NaN", "score": "NaN", "log_probs": [-1.0, "-Infinity"]}
        (self.folder / "samples.jsonl").write_text(json.dumps(line) + "\n")
        run = burnish.Run(self.folder)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            first, last = run.metrics
        self.assertIn("metrics.jsonl:2 is damaged", str(caught[0].message))
        self.assertTrue(math.isnan(first["x"]) and first["y"] == -math.inf and last["step"] == 3)
        (sample,) = run.samples
        self.assertTrue(math.isnan(sample["score"]) and sample["response"] == "NaN")
        self.assertEqual(sample["log_probs"], [-1.0, -math.inf])

    def test_the_metrics_file_is_found_where_the_run_wrote_it(self):
        run, elsewhere = self.folder / "moved", self.folder / "logs" / "metrics.jsonl"
        for folder in (run, elsewhere.parent):
            folder.mkdir()
        settings = [{"key": "trainer.default_local_dir", "value": "old", "from": "here"}]

        def recorded(metrics):
            record = {"cwd": str(self.folder), "metrics": metrics, "config": settings}
            (run / "run.json").write_text(json.dumps(record))
            return burnish.Run(run).metrics_path

        self.assertEqual(recorded("old/metrics.jsonl"), run / "metrics.jsonl")
        self.assertEqual(recorded(str(elsewhere)), elsewhere)

    def test_tables_are_data_frames_where_the_library_is(self):
        rows = [{"step": 0, "data": {"a": 1.0}}, {"step": 1, "data": {"b": "NaN"}}]
        (self.folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
        run = burnish.Run(self.folder)
        for make in (run.to_pandas, run.to_polars):
            try:
                frame = make()
            except ImportError as error:
                self.assertRegex(str(error), "pandas|polars")
                continue
            self.assertEqual((list(frame.columns), frame.shape), (["step", "a", "b"], (2, 3)))
        with self.assertRaisesRegex(ValueError, "write metrics, samples"):
            run.to_pandas("curves")
