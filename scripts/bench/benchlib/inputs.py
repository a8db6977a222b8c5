"""Models, tokenizer and prompts of the benchmarks. Everything is generated from fixed seeds; nothing is downloaded."""
import json
import pathlib
import random


def qwen2(hidden, layers, heads, kv_heads, ffn, vocab, **more):
    return {"architectures": ["Qwen2ForCausalLM"], "model_type": "qwen2", "vocab_size": vocab, "hidden_size": hidden,
            "intermediate_size": ffn, "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads,
            "hidden_act": "silu", "max_position_embeddings": 2048, "rms_norm_eps": 1e-6, "rope_theta": 10000.0,
            "tie_word_embeddings": True, "bos_token_id": 0, "eos_token_id": 0, "initializer_range": 0.02, "torch_dtype": "float32",
            **more}


SHAPES = {
    "tiny": qwen2(64, 2, 4, 2, 176, 1024),
    "small": qwen2(256, 6, 4, 2, 704, 50304),
    "medium": qwen2(640, 12, 10, 2, 1728, 50304),
    "qwen2.5-0.5b": qwen2(896, 24, 14, 2, 4864, 151936, rope_theta=1e6, max_position_embeddings=32768),
    "qwen2.5-1.5b": qwen2(1536, 28, 12, 2, 8960, 151936, rope_theta=1e6, max_position_embeddings=32768),
}


def write_json(path, value):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value, indent=1) + "\n")


def write_rows(path, rows):
    path = pathlib.Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def word(token):
    """The text of a token: its number, except for the two special tokens of the tokenizer's settings."""
    return ("<end>", "<pad>")[token] if token < 2 else str(token)


def tokenizer(folder, words):
    """Token i is the word i, words are separated by spaces: a text has as many tokens as words."""
    vocab = {word(i): i for i in range(words)}
    write_json(folder / "tokenizer.json", {
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
        "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
        "model": {"type": "WordLevel", "vocab": vocab, "unk_token": "<pad>"}})
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": "<end>",
                                                  "pad_token": "<pad>", "model_max_length": 1 << 20})


def row(prompt):
    return {"prompt": prompt, "data_source": "burnish/arithmetic", "reward_model": {"style": "rule", "ground_truth": "none"}}


def prompts(path, count, longest, words, seed=1):
    """Random prompts: half of the maximum length, half between three quarters of it and the maximum. Returns their lengths."""
    draw = random.Random(seed)
    lengths = [min(longest, draw.randint(longest * 3 // 4, longest * 5 // 4)) for _ in range(count)]
    write_rows(path, [random_row(draw, length, words) for length in lengths])
    return lengths


def fixed_prompts(count, length, words, seed=1):
    """Rows of random prompts that all have one length."""
    draw = random.Random(seed)
    return [random_row(draw, length, words) for _ in range(count)]


def random_row(draw, length, words):
    return row(" ".join(word(draw.randrange(2, words)) for _ in range(length)))


def prompts_of(path, source, tokenizer_folder, count, longest):
    """The first prompts of a file (.jsonl or .parquet; text or messages), cut on the left to the maximum length once, so that
    all programs read the same. Returns their lengths."""
    import tokenizers
    tok = tokenizers.Tokenizer.from_file(str(pathlib.Path(tokenizer_folder) / "tokenizer.json"))
    encode = lambda text: tok.encode(text, add_special_tokens=False).ids  # noqa: E731
    lengths, rows = [], []
    for source_row in read(source)[:count]:
        text = source_row["prompt"]
        text = text if isinstance(text, str) else "\n".join(message["content"] for message in text)
        keep = longest
        while len(encode(text)) > longest:
            text, keep = tok.decode(encode(text)[-keep:]), keep - 1
        lengths.append(len(encode(text)))
        rows.append(row(text))
    more = -(-count // len(rows))
    write_rows(path, (rows * more)[:count])
    return (lengths * more)[:count]


def read(path):
    """The rows of a .jsonl or .parquet file."""
    if str(path).endswith(".parquet"):
        import pyarrow.parquet
        return pyarrow.parquet.read_table(path).to_pylist()
    return [json.loads(line) for line in pathlib.Path(path).read_text().splitlines()]

