#!/usr/bin/env python3
"""Do transformers and the trainer read the same ids? Folders of models, each through AutoTokenizer and by its tokenizer.json alone, as
the trainer reads it: texts with line breaks, spaces, special tokens and characters that no vocabulary has, and back.

    python scripts/check/tokenizer_folders.py [FOLDER…]      # without folders, those under data/; needs transformers

Exit code 1 if a folder differs, 3 if transformers is not installed."""

import json
import pathlib
import random
import sys

try:
    from tokenizers import Tokenizer
    from transformers import AutoTokenizer
except ImportError as error:
    print(f"not compared: {error}")
    sys.exit(3)

ROOT = pathlib.Path(__file__).resolve().parents[2]
TEXTS = ["1 + 2\n= 3\n\n", "a  b\tc\r\n", "é 漢 🙂 \u0338=", "", " ", "\n", "it's 12,345.67 USD!"]


def texts(folder):
    """Fixed texts, and random ones of the folder's tokens and of ASCII."""
    names = [token["content"] for token in json.loads((folder / "tokenizer.json").read_text())["added_tokens"]]
    draw = random.Random(0)
    characters = [chr(code) for code in range(32, 127)] + ["\n"]
    pieces = lambda: (draw.choice(names) if names and draw.random() < 0.2 else draw.choice(characters) for _ in range(40))
    return TEXTS + ["".join(pieces()) for _ in range(200)]


def differences(folder):
    theirs = AutoTokenizer.from_pretrained(folder)
    ours = Tokenizer.from_file(str(folder / "tokenizer.json"))
    ours.no_padding()
    ours.no_truncation()
    for text in texts(folder):
        for special in (False, True):
            expected, found = ours.encode(text, add_special_tokens=special).ids, theirs(text, add_special_tokens=special)["input_ids"]
            if expected != found:
                yield f"{text!r} is {expected} here and {found} in transformers"
        ids = ours.encode(text, add_special_tokens=False).ids
        if ours.decode(ids, skip_special_tokens=False) != theirs.decode(ids, skip_special_tokens=False):
            yield f"{ids} are {ours.decode(ids, skip_special_tokens=False)!r} here and {theirs.decode(ids)!r} in transformers"


def main(names):
    folders = [pathlib.Path(name) for name in names] or sorted(path.parent for path in (ROOT / "data").rglob("tokenizer.json"))
    wrong = 0
    for folder in folders:
        found = next(differences(folder), None)
        wrong += found is not None
        print(f"{folder}: {found or 'the same ids and texts'}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
