"""A folder for the runs of a test, and settings of a small run."""

import contextlib
import os
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "python"))

SMALL = {
    "data.train_batch_size": 8,
    "data.val_max_samples": 32,
    "actor_rollout_ref.rollout.n": 4,
    "actor_rollout_ref.actor.ppo_mini_batch_size": 8,
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": 32,
    "trainer.total_training_steps": 2,
}


STEPS = ("trainer.total_training_steps", "trainer.save_freq", "trainer.test_freq")


@contextlib.contextmanager
def small_runs():
    """Makes each training of pages and scripts a small one of two steps."""
    import burnish

    def made_small(real):
        def call(config=None, overrides=None, **options):
            given = {**SMALL, **(overrides or {})}
            shorter = {name: min(given[name], 2) for name in STEPS if name in given}
            return real(config, {**given, **shorter}, **options)

        return call

    with mock.patch("burnish.train", made_small(burnish.train)), mock.patch("burnish.start", made_small(burnish.start)):
        yield


class InFolder(unittest.TestCase):
    """Each test works in a new folder, in which the data of the repository lie."""

    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.folder = Path(temporary.name).resolve()
        os.symlink(ROOT / "data", self.folder / "data")
        self.addCleanup(os.chdir, os.getcwd())
        os.chdir(self.folder)
