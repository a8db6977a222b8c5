"""Tokens per second of generation for growing numbers of rows, from `timing_s/gen` of warm training steps, compared with vLLM."""
import pathlib

from benchlib import flop, inputs
from benchlib.process import Failed, Run, read_rows

from .cards import of, share
from .common import LONGEST_PROMPT, Skipped, check, measured, model, need_modules, pieces, skip, train

HERE = pathlib.Path(__file__).resolve().parent


def sizes(args):
    """The numbers of rows, and the tokens of a response."""
    return ((1, 4), 8) if args.quick else ((1, 64, 256, 1024), 256)


def decode(args, folder):
    for shape in args.shapes:
        theirs = {}
        try:
            theirs = vllm(args, folder / f"{shape}-vllm", shape)
        except Skipped as reason:
            yield skip(f"{shape}: vLLM", reason)
        except Failed as error:
            yield check(f"{shape}: vLLM", False, error=str(error))
        rows, _ = sizes(args)
        yield from pieces((f"{shape}: {count} rows", lambda n=count: of_rows(args, folder / f"{shape}-{n}", shape, n, theirs.get(n)))
                          for count in rows)


def of_rows(args, folder, shape, count, theirs):
    _, tokens = sizes(args)
    # The last two of three steps count. Nothing is compared within a group, so that each row has its own prompt, as with vLLM.
    rows = train(args, folder, shape, count, 1, tokens, min(count, 32), 3, more=args.set)
    seconds = min(row["timing_s/gen"] for row in rows[-2:])
    work, read = costs(args, shape, count, tokens)
    card, each = of(args) or {}, seconds / tokens
    yield measured(f"Generation: prompts of up to {LONGEST_PROMPT} tokens, responses of {tokens}, {args.dtype}", {
        "shape": shape, "rows": count, "tokens/s": count * tokens / seconds, "ms for a token of each row": 1000 * each,
        "of the bandwidth": share(read / each, card.get("bytes_per_s")),
        "of the peak FLOP": share(work / seconds, card.get("flop_per_s")),
        "vLLM, tokens/s": theirs, "ours / vLLM": count * tokens / seconds / theirs if theirs else None})


def costs(args, shape, count, tokens):
    """Useful operations of a generation, and the bytes that one of its steps must read: all matrices once, and the keys and values of
    every row at half its response."""
    sizes_of, config = flop.Model.of(inputs.SHAPES[shape]), inputs.SHAPES[shape]
    width = 2 if args.dtype == "bfloat16" else 4
    cached = 2 * config["num_hidden_layers"] * sizes_of.kv_heads * sizes_of.head_dim * (LONGEST_PROMPT + tokens / 2)
    return count * sizes_of.generation(LONGEST_PROMPT, tokens, 1), width * (sizes_of.parameters + count * cached)


def vllm(args, folder, shape):
    """{rows: tokens per second} of vLLM."""
    if args.kind != "cuda":
        raise Skipped(f"it is measured on cuda, not on {args.device}")
    need_modules(args.vllm_python, "vllm")
    rows, tokens = sizes(args)
    out = folder / "rows.jsonl"
    inputs.write_json(folder / "settings.json", {
        "model": str(model(args, shape)), "dtype": args.dtype, "rows": rows, "tokens": tokens, "prompt": LONGEST_PROMPT,
        "vocab": inputs.SHAPES[shape]["vocab_size"], "out": str(out)})
    Run([args.vllm_python, HERE / "vllm_decode.py", folder / "settings.json"], folder / "log.txt").wait(args.timeout)
    return {row["rows"]: row["tokens_per_s"] for row in read_rows(out)}
