"""Whole trainings: rows while they are logged, results, errors, Ctrl-C and resuming."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from helpers import ROOT, SMALL, InFolder

import burnish


class Training(InFolder):
    def test_rows_arrive_as_logged_and_the_run_has_all_of_it(self):
        seen = []
        overrides = {**SMALL, "algorithm.adv_estimator": "rloo", "trainer.save_freq": 1}
        run = burnish.train(overrides=overrides, on_row=seen.append, show=False)
        self.assertEqual([row["step"] for row in seen], [0, 1, 2])
        self.assertEqual(run.metrics, seen)
        self.assertEqual(run.state, "finished")
        self.assertEqual(run.info["step"], 2)
        self.assertEqual(run.setting("algorithm.adv_estimator"), "rloo")
        (where,) = [one["from"] for one in run.settings if one["key"] == "algorithm.adv_estimator"]
        self.assertEqual(where, "override algorithm.adv_estimator=rloo")
        self.assertIn("response", run.samples[0])
        self.assertEqual([one["step"] for one in run.checkpoints if one["last"]], [2])
        self.assertTrue(all(one["path"].is_dir() for one in run.checkpoints))
        self.assertEqual(burnish.Run(run.checkpoints[0]["path"]).path, run.path)
        self.assertIn("<td>critic/score/mean</td>", run._repr_html_())
        self.assertIn("<html", run.report(self.folder / "page.html").read_text())
        # The run is complete, so the same call trains nothing.
        again = []
        same = burnish.train(overrides=overrides, on_row=again.append, show=False)
        self.assertEqual((same.path, again), (run.path, []))

    def test_a_stage_and_a_script_train_by_their_command(self):
        pairs = {"trainer.total_training_steps": 1, "trainer.test_freq": -1}
        run = burnish.train("arithmetic/first_sft.yaml", pairs, command="sft", show=False)
        self.assertIn("train/loss", run.metrics[-1])
        script = "python3 -m verl.trainer.main_ppo data.train_files=data/arithmetic/train.parquet"
        words = burnish._train.command_words(script, {"data.seed": 1}, "run")
        self.assertEqual(words, ["run", script, "data.seed=1"])

    def test_an_interrupted_run_is_saved_and_resumed(self):
        # A shell starts programs in the background without SIGINT.
        script = f"""
import signal, sys
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {str(ROOT / "python")!r})
import burnish
burnish.train(overrides={ {**SMALL, "trainer.total_training_steps": 2000}!r}, on_row=lambda row: print(row["step"], flush=True), show=False)
"""
        with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
            while child.stdout.readline().strip() != "1":
                self.assertIsNone(child.poll(), "the script has ended")
            child.send_signal(signal.SIGINT)
            _, stderr = child.communicate(timeout=30)
        self.assertNotEqual(child.returncode, 0)
        self.assertIn("Interrupted: ", stderr)
        (folder,) = Path("checkpoints").glob("*/*/run.json")
        run = burnish.Run(folder.parent)
        self.assertEqual(run.state, "interrupted")
        (saved,) = [one["step"] for one in run.checkpoints]
        training = burnish.start(overrides={**SMALL, "trainer.total_training_steps": 2000})
        rows = iter(training)
        self.assertEqual(next(rows)["step"], saved + 1)
        training.interrupt()
        with self.assertRaises(burnish.Interrupted) as caught:
            training.wait()
        self.assertEqual(caught.exception.run.path.resolve(), run.path.resolve())


class Mistakes(InFolder):
    def test_an_error_of_the_program_is_its_message(self):
        with self.assertRaises(burnish.TrainerError) as caught:
            burnish.train(overrides={"algorithm.adv_estimater": "rloo"}, show=False)
        error = caught.exception
        self.assertEqual((error.code, error.run), (2, None))
        self.assertIn("did you mean `algorithm.adv_estimator`?", error.message)
        self.assertEqual(len(error._render_traceback_()), 1)
        with self.assertRaises(burnish.TrainerError) as caught:
            Path("reward.py").write_text("def compute_score(data_source, solution_str, ground_truth, extra_info=None):\n    raise KeyError('lost')\n")
            burnish.train(overrides={**SMALL, "custom_reward_function.path": "reward.py", "trainer.val_before_train": False}, show=False)
        self.assertEqual(caught.exception.code, 1)
        self.assertIn("KeyError: 'lost'", caught.exception.message)
        self.assertEqual(caught.exception.run.state, "failed")

    def test_other_ways_to_write_settings_are_refused_by_name(self):
        for call, part in [
            (lambda: burnish.train(algorithm__adv_estimator="rloo"), "overrides={'algorithm.adv_estimator': 'rloo'}"),
            (lambda: burnish.start(**{"trainer.seed": 1}), "overrides={'trainer.seed': 1}"),
            (lambda: burnish.train(overrides=["trainer.seed=1"]), "overrides is a list, not a mapping"),
            (lambda: burnish.train(overrides={"trainer.seed": object()}), "trainer.seed is a object"),
            (lambda: burnish.train(overrides={1: 2}), "not 1"),
            (lambda: burnish.train(command="grpo"), "command='grpo' is not a kind of training"),
            (lambda: burnish.train(command="run"), "needs a script"),
            (lambda: burnish.Run(self.folder), "no run in"),
            (lambda: burnish.convert("x", peer="ray"), "peer='ray'"),
        ]:
            with self.assertRaises((TypeError, ValueError, FileNotFoundError)) as caught:
                call()
            self.assertIn(part, str(caught.exception))

    def test_a_program_that_is_not_there_is_one_clear_error(self):
        named, path = os.environ.get("BURNISH_TRAINER"), os.environ["PATH"]
        try:
            os.environ["BURNISH_TRAINER"] = "/no/such/program"
            with self.assertRaisesRegex(burnish.TrainerError, "BURNISH_TRAINER=/no/such/program is not a program"):
                burnish.train(show=False)
            del os.environ["BURNISH_TRAINER"]
            program = self.folder / "bin" / "trainer"
            program.parent.mkdir()
            program.write_text("#!/bin/sh\n")
            program.chmod(0o755)
            os.environ["PATH"] = str(program.parent)
            self.assertTrue(burnish.trainer_path().endswith("trainer"))
        finally:
            os.environ["PATH"] = path
            if named:
                os.environ["BURNISH_TRAINER"] = named

    def test_values_come_to_the_program_as_they_are(self):
        texts = ["plain", "1", "1e-5", "null", "True", "", " a b ", "it's", "a\\", "a\\'b", "x: [1, 2]", "{}", "ü=,", "~/x", "-1"]
        value = {"texts": texts, "a": [1, 2.5, True, None, "x y"], "b": {"c": Path("p/q")}, "d": 1e-7, "e": -3}
        words = burnish._overrides.words_of({"+custom_reward_function.reward_kwargs": value, "~trainer.seed": None})
        self.assertEqual(words[1], "~trainer.seed")
        shown = burnish._program.call(["config", "show", "--format", "json", "--config", "ppo_trainer.yaml", words[0]])
        read = json.loads(shown)["custom_reward_function"]["reward_kwargs"]
        self.assertEqual(read, {**value, "b": {"c": "p/q"}})
