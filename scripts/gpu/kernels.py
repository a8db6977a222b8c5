"""Time of each kernel, by CubeCL's log. Kernels are compiled and tuned in the first batch and the first step, so the shown
time is half the difference between three of them and one."""
import re

from benchlib import inputs
from benchlib.process import Failed, Run

from .common import Skipped, measured, model, pieces, tokenizer, train

LINE = re.compile(r"^\| (\S+)\s+\| (.+)$")
# Rust's way to write a duration.
UNIT = {"ns": 1e-9, "µs": 1e-6, "ms": 1e-3, "s": 1.0}
SHOWN = 20


def kernels(args, folder):
    if args.kind == "cpu":
        raise Skipped("the CPU runs no kernels of CubeCL")
    shape = args.shapes[0]
    rows, tokens = (2, 4) if args.quick else (64, 32)
    yield from pieces([
        ("generation", lambda: shown(folder / "generation", generate(args, shape, rows, tokens),
                                     f"{shape}: generation of {tokens} tokens for {rows} rows", tokens)),
        ("a training step", lambda: shown(folder / "step", steps(args, shape, rows, tokens),
                                          f"{shape}: a training step of {rows} rows of {tokens} tokens, generation included", 1)),
    ])


def generate(args, shape, rows, tokens):
    """Runs `trainer generate` on this many batches."""
    def run(folder, batches):
        inputs.write_rows(folder / "prompts.jsonl", inputs.fixed_prompts(rows * batches, 16, inputs.SHAPES[shape]["vocab_size"]))
        command = [args.trainer, "generate", "--config", "generation.yaml", f"data.path={folder}/prompts.jsonl",
                   f"data.output_path={folder}/out.parquet", f"data.batch_size={rows}", f"model.path={model(args, shape)}",
                   f"model.dtype={args.dtype}", f"model.tokenizer_path={tokenizer(args, shape)}", "rollout.ignore_eos=true",
                   f"rollout.response_length={tokens}", f"trainer.device={args.device}"]
        Run(command, folder / "log.txt", cwd=folder).wait(args.timeout)
    return run


def steps(args, shape, rows, tokens):
    """Runs this many training steps."""
    def run(folder, count):
        train(args, folder, shape, rows, 1, tokens, rows, count, more=args.set, cwd=folder)
    return run


def shown(folder, run, name, per):
    """Rows of a table: the kernels that take the longest, then all others together."""
    logs = []
    for count in (1, 3):
        at = folder / f"run-{count}"
        at.mkdir(parents=True)
        (at / "cubecl.toml").write_text(f'[profiling]\nlogger = {{ level = "medium", file = "{at}/kernels.log" }}\n')
        run(at, count)
        if not (at / "kernels.log").exists():
            raise Failed(f"CubeCL wrote no log to {at}/kernels.log: was the trainer built with the feature of {name}'s device?")
        logs.append(read(at / "kernels.log"))
    once = difference(*logs)
    if not once:
        raise Failed("the logs of one and of three rounds have the same kernels: nothing is known of a warm one")
    whole = sum(seconds for _, seconds in once.values())
    ordered = sorted(once.items(), key=lambda item: -item[1][1])
    rest = [found for _, found in ordered[SHOWN:]]
    if rest:
        ordered = ordered[:SHOWN] + [(f"{len(rest)} others", tuple(map(sum, zip(*rest))))]
    for kernel, (launches, seconds) in ordered + [("all", (sum(count for count, _ in once.values()), whole))]:
        row = {"kernel": kernel, "launches": launches, "ms": 1000 * seconds, "share": f"{seconds / max(whole, 1e-12):.1%}"}
        yield measured(name, {**row, "launches for a token of each row": launches / per} if per > 1 else row)


def read(path):
    """{kernel: (launches, seconds)} of a log of level `medium`. A name ends in a number of the kernel's configuration, which
    is removed."""
    found = {}
    for line in path.read_text(errors="replace").splitlines():
        match = LINE.match(line)
        seconds = match and duration(match[1])
        if seconds is not None:
            kernel = re.sub(r"_[0-9a-f]{8}$", "", match[2].strip())
            launches, sum_of = found.get(kernel, (0, 0.0))
            found[kernel] = (launches + 1, sum_of + seconds)
    return found


def duration(text):
    match = re.fullmatch(r"([0-9.]+)(ns|µs|ms|s)", text)
    return float(match[1]) * UNIT[match[2]] if match else None


def difference(one, three):
    """Half of the difference between three rounds and one, without kernels that only the first round runs."""
    found = {}
    for kernel, (launches, seconds) in three.items():
        before = one.get(kernel, (0, 0.0))
        more = (launches - before[0]) / 2
        if more > 0:
            found[kernel] = (more, max(seconds - before[1], 0.0) / 2)
    return found
