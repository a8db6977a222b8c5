"""Common code of the parts: checks and measurements, requirements, models of random weights, short runs."""
import pathlib
import subprocess

from benchlib import inputs, ours, random_weights
from benchlib.process import Failed, read_rows

ROOT = pathlib.Path(__file__).resolve().parents[2]
# The bounds of tests/model/transformers.rs; the last is the requirement for float32.
TOLERANCE = {"loss": 1e-4, "grad_norm": 1e-3, "loss_after": 1e-4, "log_probs": 2e-5}
LONGEST_PROMPT = 64


class Skipped(Exception):
    """A requirement of a part is missing; the message names it and its source."""


def check(name, holds, **found):
    """A condition that must hold."""
    return {"check": name, "holds": bool(holds), **found}


def skip(name, reason):
    """A skipped piece of a part."""
    return {"check": name, "skipped": str(reason)}


def measured(table, row):
    """A row of a table of measurements, {column: value}, without any condition."""
    return {"table": table, "row": row}


def near(value, wanted, tolerance):
    return abs(value - wanted) <= tolerance * max(1.0, abs(wanted))


def pieces(each, errors=(Failed, OSError, KeyError, IndexError, ValueError)):
    """Runs (name, function that yields findings) in turn. One that fails or is skipped does not stop the next."""
    for name, piece in each:
        try:
            yield from piece()
        except Skipped as reason:
            yield skip(name, reason)
        except errors as error:
            yield check(name, False, error=f"{type(error).__name__}: {error}")


def need_modules(python, *modules):
    """Raises `Skipped` unless that Python has them all."""
    code = "import importlib.util, sys; print(*[m for m in sys.argv[1:] if importlib.util.find_spec(m) is None])"
    try:
        done = subprocess.run([python, "-c", code, *modules], capture_output=True, text=True, timeout=60)
    except (OSError, subprocess.SubprocessError) as error:
        raise Skipped(f"{python} does not run: {error}") from None
    missing = done.stdout.split() if done.returncode == 0 else list(modules)
    if missing:
        raise Skipped(f"{python} has no {', '.join(missing)}; install: pip install {' '.join(missing)}")


def model(args, shape):
    """The folder of a model of that shape with random weights, made once per call of gpu-check."""
    folder = args.work / "models" / shape
    if not (folder / "model.safetensors").exists():
        inputs.write_json(folder / "config.json", inputs.SHAPES[shape])
        random_weights.write(folder)
        inputs.tokenizer(folder.parent / f"{shape}-tokenizer", inputs.SHAPES[shape]["vocab_size"])
    return folder


def tokenizer(args, shape):
    return args.work / "models" / f"{shape}-tokenizer"


def train(args, folder, shape, prompts, samples, tokens, micro, steps, beta=0.0, more=(), cwd=None):
    """Runs this many steps on random prompts; returns the rows."""
    settings = training_settings(args, folder, shape, prompts, samples, tokens, micro, steps, beta) + list(more)
    return ours.run(args.trainer, folder, settings, args.threads, args.timeout, cwd)[0]


def training_settings(args, folder, shape, prompts, samples, tokens, micro, steps, beta=0.0, rows=None):
    """Settings of a run on random prompts, of which `rows` are made: one for each of all steps unless given."""
    at = model(args, shape)
    folder.mkdir(parents=True, exist_ok=True)
    data = folder / "prompts.jsonl"
    inputs.prompts(data, rows or prompts * steps, LONGEST_PROMPT, inputs.SHAPES[shape]["vocab_size"])
    settings = ours.step_settings(folder, at, tokenizer(args, shape), data, prompts, samples, LONGEST_PROMPT, tokens, micro, steps,
                                  args.device, args.dtype, beta=beta)
    # A single response to each prompt has no group to compare with.
    return settings if samples > 1 else settings + ["algorithm.adv_estimator=reinforce_plus_plus"]


def prompt_lengths(folder):
    return [len(row["prompt"].split()) for row in read_rows(folder / "prompts.jsonl")]
