"""Every golden model of tests/golden: greedy tokens, loss, gradient norm and one AdamW step against transformers."""
import json
import pathlib

from benchlib import inputs
from benchlib.process import Run, read_rows

from .common import TOLERANCE, Skipped, check, near, need_modules, pieces


def goldens(args, folder):
    each = []
    for model in sorted(pathlib.Path(args.goldens).iterdir()):
        golden = json.loads((model / "golden.json").read_text()) if (model / "golden.json").exists() else {}
        if "sequences" not in golden:
            continue
        for part in (greedy, step):
            at = folder / f"{model.name}-{part.__name__}"
            each.append((f"{model.name}: {part.__name__}", lambda p=part, a=at, m=model, g=golden: p(args, a, m.resolve(), g)))
    if not each:
        raise Skipped(f"{args.goldens} has no golden models; --goldens names their folder")
    yield from pieces(each)


def greedy(args, folder, model, golden):
    """`trainer generate`, with a tokenizer whose words are the ids."""
    need_modules(args.python, "pyarrow")
    words = json.loads((model / "config.json").read_text())["vocab_size"]
    inputs.tokenizer(folder / "tokenizer", words)
    inputs.write_rows(folder / "prompts.jsonl", [{"prompt": " ".join(map(inputs.word, ids))} for ids in golden["seqs"]])
    length = len(golden["sequences"][0]["greedy12"])
    command = [args.trainer, "generate", "--config", "generation.yaml", f"data.path={folder}/prompts.jsonl",
               f"data.output_path={folder}/out.parquet", f"model.path={model}", "model.dtype=float32",
               f"model.tokenizer_path={folder}/tokenizer", "rollout.do_sample=false", "rollout.ignore_eos=true",
               "rollout.prompt_length=64", f"rollout.response_length={length}", f"trainer.device={args.device}"]
    Run(command, folder / "log.txt").wait(args.timeout)
    read = ("import json, pyarrow.parquet, sys; "
            "print(json.dumps([row['responses'][0] for row in pyarrow.parquet.read_table(sys.argv[1]).to_pylist()]))")
    Run([args.python, "-c", read, folder / "out.parquet"], folder / "responses.json").wait(args.timeout)
    responses = [text.split() for text in json.loads((folder / "responses.json").read_text())]
    wanted = [[inputs.word(i) for i in sequence["greedy12"]] for sequence in golden["sequences"]]
    right = sum(a == b for response, want in zip(responses, wanted) for a, b in zip(response, want))
    yield check(f"{model.name}: greedy tokens", responses == wanted, found=right, wanted=sum(map(len, wanted)))


def step(args, folder, model, golden):
    """`trainer sft` for one step on the golden's sequences: all tokens except the first are trained, nothing is added. For
    that each token is special, so that the last of a sequence ends it."""
    token = lambda i: f"<{i}>"  # noqa: E731
    words = json.loads((model / "config.json").read_text())["vocab_size"]
    special = [{"id": i, "content": token(i), "special": True, "single_word": False, "lstrip": False, "rstrip": False,
                "normalized": False} for i in range(words)]
    inputs.write_json(folder / "tokenizer/tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None, "pre_tokenizer": None,
        "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": {token(i): i for i in range(words)}, "unk_token": token(0)}})
    inputs.write_json(folder / "tokenizer/tokenizer_config.json", {
        "eos_token": token(0), "chat_template": "{% for message in messages %}{{ message.content }}{% endfor %}"})
    talk = lambda ids: [{"role": "user", "content": token(ids[0])},  # noqa: E731
                        {"role": "assistant", "content": "".join(map(token, ids[1:]))}]
    inputs.write_rows(folder / "talks.jsonl", [{"messages": talk(ids)} for ids in golden["seqs"]])
    adamw, count = golden["adamw_step"], len(golden["seqs"])
    command = [args.trainer, "sft", "--config", "sft_trainer.yaml", f"data.train_files={folder}/talks.jsonl",
               f"data.val_files={folder}/talks.jsonl", "data.messages_key=messages", f"data.train_batch_size={count}",
               f"data.micro_batch_size_per_gpu={count}", "data.max_length=64", "data.shuffle=false",
               f"model.path={model}", "model.init=pretrained", "model.dtype=float32", f"model.tokenizer_path={folder}/tokenizer",
               f"optim.lr={adamw['lr']}", "optim.lr_scheduler_type=constant", "optim.lr_warmup_steps_ratio=0.0",
               f"optim.betas=[{adamw['betas'][0]},{adamw['betas'][1]}]", f"optim.eps={adamw['eps']}",
               f"optim.weight_decay={adamw['weight_decay']}", f"optim.clip_grad={adamw['clip_grad_norm']}",
               "trainer.total_training_steps=1", "trainer.test_freq=1", "trainer.save_freq=null", "trainer.logger=[file]",
               "checkpoint.save_contents=[model]", "trainer.resume_mode=disable", f"trainer.device={args.device}",
               f"trainer.default_local_dir={folder}/run"]
    Run(command, folder / "log.txt").wait(args.timeout)
    row = read_rows(folder / "run/metrics.jsonl")[-1]["data"]
    pairs = {"loss": ("train/loss", golden["loss"]), "grad_norm": ("train/grad_norm", golden["grad_norm"]),
             "loss_after": ("val/loss", adamw["loss_after"])}
    for name, (metric, wanted) in pairs.items():
        holds = near(row[metric], wanted, TOLERANCE[name])
        yield check(f"{model.name}: {name.replace('_', ' ')}", holds, found=row[metric], wanted=wanted, tolerance=TOLERANCE[name])
