"""Post-training of language models by the program ``trainer``, from Python.

>>> import burnish
>>> run = burnish.train(overrides={"algorithm.adv_estimator": "rloo"})
>>> run.metrics[-1]["critic/score/mean"]

The package starts the program and reads the files of its runs; it needs only the standard library.
"""

from . import reward
from ._convert import Conversion, convert
from ._errors import Interrupted, TrainerError
from ._program import trainer_path
from ._run import Run
from ._train import Training, start, train
from ._version import __version__

__all__ = [
    "Conversion",
    "Interrupted",
    "Run",
    "TrainerError",
    "Training",
    "__version__",
    "convert",
    "reward",
    "start",
    "train",
    "trainer_path",
]
