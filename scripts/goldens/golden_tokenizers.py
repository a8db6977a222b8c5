"""Writes tests/golden/tokenizers/NAME/: small tokenizer folders in the variants that transformers reads, each with expected.json:
transformers' results for some texts and ids, and its special tokens.

    pip install transformers==5.23.0
    python scripts/goldens/golden_tokenizers.py tests/golden/tokenizers

With `--random COUNT SEED`, folders with random files instead, and with `--ask` only expected.json of the existing folders:

    python scripts/goldens/golden_tokenizers.py more/tokenizers --random 300 1
    BURNISH_GOLDENS=$PWD/more cargo test --release --test algorithms golden_tokenizers

A folder that transformers refuses is skipped.
"""

import json
import pathlib
import random
import shutil
import sys

import transformers
from transformers import AutoTokenizer

TEXT = "abcd <>/0129=+.!?'"
WORDS = ["<pad>", "<bos>", "<eos>", "<unk>", "<sep>", "<a>", "<A>", "ab"]
NEW = ["<new>", "<x0>", "<x1>", "d0"]
TEXTS = [
    "ab=12<eos>", "a <eos> b", "<bos>a<sep>b<a> <A>c", "<A><a>ab ab", "d0<new> <x0>a<x1>", "", "<eos>", "  a  <pad>  b ", "<unk>é<bos",
    "a . b ? c ! d , 's 've n't ' x", "<EOS><Bos>",
]


def flags(content, **more):
    return {"content": content, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True, **more}


def tokenizer(added=(), lower=False, processor=None, more=()):
    """A tokenizer of characters with WORDS in its vocabulary, and `added` as added tokens."""
    texts = [*WORDS, *TEXT, *more]
    vocab = {text: id for id, text in enumerate(dict.fromkeys(texts))}
    return {
        "version": "1.0", "truncation": None, "padding": None,
        "added_tokens": [{"id": vocab[token["content"]], **token} for token in sorted(added, key=lambda t: vocab[t["content"]])],
        "normalizer": {"type": "Lowercase"} if lower else None,
        "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "[\\s\\S]"}, "behavior": "Isolated", "invert": False},
        "post_processor": processor and template(vocab, *processor),
        "decoder": {"type": "Fuse"},
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<unk>"},
    }


def template(vocab, before, after):
    token = lambda text: {"SpecialToken": {"id": text, "type_id": 0}}
    text = lambda name: {"Sequence": {"id": name, "type_id": 0}}
    single = [*map(token, before), text("A"), *map(token, after)]
    known = {text: {"id": text, "ids": [vocab[text]], "tokens": [text]} for text in {*before, *after}}
    return {"type": "TemplateProcessing", "single": single, "pair": [*single, text("B")], "special_tokens": known}


def config(**more):
    return {"tokenizer_class": "PreTrainedTokenizerFast", "clean_up_tokenization_spaces": False, **more}


USUAL = [flags(text) for text in WORDS[:4]]
NAMED = {"eos_token": "<eos>", "pad_token": "<pad>", "unk_token": "<unk>"}
T, C, M, A = "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json"


def by_type(content, **more):
    return {"__type": "AddedToken", **flags(content, **more)}


FOLDERS = {
    "usual": {T: tokenizer(USUAL), C: config(**NAMED, bos_token="<bos>")},
    "named-in-config": {T: tokenizer(), C: config(**NAMED)},
    "not-special": {T: tokenizer([flags(t["content"], special=False) for t in USUAL]), C: config(**NAMED)},
    "not-special-normalized": {
        T: tokenizer([flags(t["content"], special=False, normalized=True) for t in USUAL], lower=True), C: config(**NAMED),
    },
    "decoder-alone": {
        T: tokenizer(),
        C: config(**NAMED, added_tokens_decoder={"2": flags("<eos>"), "4": flags("<sep>", special=False), "7": flags("ab", single_word=True, special=False)}),
    },
    "decoder-hides-names": {T: tokenizer([flags("<eos>", special=False)]), C: config(**NAMED, added_tokens_decoder={"0": flags("<pad>")}), M: {"sep_token": "<sep>"}},
    "decoder-changes-flags": {
        T: tokenizer(USUAL),
        C: config(**NAMED, added_tokens_decoder={"1": flags("<bos>", special=False), "2": flags("<eos>", lstrip=True, rstrip=True), "26": flags("<new>")}),
    },
    "map-alone": {T: tokenizer(), M: {"eos_token": "<eos>", "sep_token": flags("<sep>", lstrip=True), "additional_special_tokens": ["<a>", "<new>"]}, C: config()},
    "map-before-config": {T: tokenizer(USUAL), M: {"eos_token": "<sep>"}, C: config(**NAMED)},
    "objects": {T: tokenizer(), C: config(eos_token=by_type("<eos>", rstrip=True), pad_token=by_type("<pad>", normalized=True), image_token="<a>")},
    "extra-list": {T: tokenizer(USUAL), C: config(**NAMED, extra_special_tokens=["<a>", "<x0>", by_type("<A>", lstrip=True)], additional_special_tokens=["ab"])},
    "extra-object": {T: tokenizer(USUAL), C: config(**NAMED, extra_special_tokens={"think": "<a>", "image_token": "<x1>"})},
    "additional": {T: tokenizer(USUAL), C: config(**NAMED, additional_special_tokens=["<a>", "<new>", "ab"])},
    "added-tokens": {T: tokenizer(USUAL[:3]), C: config(**NAMED, sep_token="<sep>"), A: {"<sep>": 4, "<x1>": 27, "<x0>": 26, "<eos>": 2}},
    "new-end": {T: tokenizer(), C: config(eos_token="<new>", pad_token="<pad>")},
    "strips": {T: tokenizer([flags("<pad>"), flags("<eos>", lstrip=True), flags("<sep>", rstrip=True, special=False), flags("ab", single_word=True, special=False)]), C: config(**NAMED)},
    "normalized": {T: tokenizer([flags("<pad>"), flags("<eos>", normalized=True), flags("<A>", special=False, normalized=True)], lower=True), C: config(**NAMED, extra_special_tokens=["<Bos>"])},
    "begins": {T: tokenizer(USUAL, processor=(["<bos>"], [])), C: config(**NAMED, bos_token="<bos>")},
    "begins-and-ends": {T: tokenizer(USUAL, processor=(["<bos>"], ["<eos>"])), C: config(**NAMED, bos_token="<bos>", add_bos_token=False, add_eos_token=False)},
    "asks-for-first": {T: tokenizer(USUAL), C: config(**NAMED, bos_token="<bos>", add_bos_token=True, add_eos_token=True)},
    "cleans-up": {T: tokenizer(USUAL), C: {**config(**NAMED), "clean_up_tokenization_spaces": True}},
    "splits": {T: tokenizer(USUAL), C: config(**NAMED, split_special_tokens=True)},
}


def random_folder(rng):
    some = lambda items, most: rng.sample(items, rng.randint(0, min(most, len(items))))
    coin = lambda: rng.random() < 0.5
    flag = lambda text: flags(text, special=coin(), normalized=coin(), **{rng.choice(["lstrip", "rstrip", "single_word"]): rng.random() < 0.3})
    # Two tokens that are equal in lower case are distinguished randomly.
    lower = coin()
    words = [word for word in WORDS if not lower or word != "<A>"]
    anything = [*words, *NEW]
    value = lambda text: by_type(text, special=coin(), lstrip=coin()) if rng.random() < 0.3 else text
    names = ["bos_token", "eos_token", "unk_token", "sep_token", "pad_token", "cls_token", "mask_token", "image_token"]
    settings = {name: value(rng.choice(anything)) for name in some(names, 5)}
    if coin():
        settings[rng.choice(["extra_special_tokens", "additional_special_tokens"])] = [value(text) for text in some(anything, 4)]
    elif rng.random() < 0.3:
        settings["extra_special_tokens"] = {f"name{i}": text for i, text in enumerate(some(anything, 3))}
    inner = tokenizer([flag(text) for text in some(words, 6)], lower=lower, processor=rng.choice([None, (["<bos>"], []), (["<bos>"], ["<eos>"])]))
    known = inner["model"]["vocab"]
    if rng.random() < 0.4:
        ids = lambda text: known.get(text, len(known) + NEW.index(text) if text in NEW else 0)
        settings["added_tokens_decoder"] = {str(ids(text)): flag(text) for text in some(anything, 6)}
    files = {T: inner, C: config(**settings)}
    if rng.random() < 0.4:
        files[M] = {name: flags(rng.choice(anything)) if coin() else rng.choice(anything) for name in some(names[:7], 4)}
        if coin():
            files[M][rng.choice(["additional_special_tokens", "extra_special_tokens"])] = some(anything, 3)
    if rng.random() < 0.3:
        files[A] = {text: known.get(text, len(known) + i) for i, text in enumerate(some(anything, 4))}
    return files


def ask(folder):
    loaded = AutoTokenizer.from_pretrained(folder)
    rng = random.Random(0)
    everything = list(range(len(loaded)))
    ids = [everything, *([rng.choice(everything) for _ in range(12)] for _ in range(4)), *(loaded(text, add_special_tokens=False)["input_ids"] for text in TEXTS)]
    cases = [
        {"text": text, "ids": loaded(text, add_special_tokens=False)["input_ids"], "plain": loaded(text)["input_ids"]} for text in TEXTS
    ]
    decoded = [{"ids": some, "all": loaded.decode(some), "skipped": loaded.decode(some, skip_special_tokens=True)} for some in ids]
    special = [id for id, token in sorted(loaded.added_tokens_decoder.items()) if token.special]
    return {
        "transformers": transformers.__version__, "tokens": loaded.special_tokens_map, "eos": loaded.eos_token_id, "size": max(loaded.get_vocab().values()) + 1,
        "special": special, "cases": cases, "decoded": decoded,
    }


def write(folder, files):
    folder.mkdir(parents=True, exist_ok=True)
    for name, value in files.items():
        (folder / name).write_text(json.dumps(value, ensure_ascii=False) + "\n", encoding="utf-8")
    try:
        expected = ask(folder)
    except Exception as error:
        print(f"{folder.name}: left out: {type(error).__name__}: {error}", file=sys.stderr)
        shutil.rmtree(folder)
        return
    (folder / "expected.json").write_text(json.dumps(expected, ensure_ascii=False) + "\n", encoding="utf-8")


def main(out, mode=None, count="0", seed="0"):
    out = pathlib.Path(out)
    if mode == "--ask":
        for path in sorted(out.iterdir()):
            write(path, {})
    elif mode == "--random":
        for i in range(int(count)):
            write(out / f"random-{seed}-{i}", random_folder(random.Random(f"{seed} {i}")))
    else:
        for name, files in FOLDERS.items():
            write(out / name, files)


main(*sys.argv[1:])
