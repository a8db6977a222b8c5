"""Write small random models of every family, in many shapes and spellings, as Hugging Face folders, and the results of
transformers with each: a differential check of crates/model/src that is wider than the goldens in the repository.

    python scripts/goldens/golden_families.py check/models        (pip install torch transformers)
    BURNISH_GOLDENS=check cargo test --release --test model transformers
"""
import json
import pathlib
import subprocess
import sys

import torch
import transformers as t

out = pathlib.Path(sys.argv[1])
base = dict(vocab_size=199, hidden_size=48, intermediate_size=88, num_hidden_layers=3, num_attention_heads=6,
            num_key_value_heads=2, max_position_embeddings=96, initializer_range=0.25, bos_token_id=1, eos_token_id=2,
            pad_token_id=0, attention_dropout=0.0)


neox = {key: value for key, value in base.items() if key != "num_key_value_heads"}


def scaled(**rope):
    return {**base, "rope_parameters": {"rope_theta": 5000.0, **rope}}


MODELS = {
    "llama_mha_bias": (t.LlamaConfig, {**base, "num_key_value_heads": 6, "attention_bias": True, "mlp_bias": True}),
    "llama_head_dim": (t.LlamaConfig, {**base, "head_dim": 20, "rms_norm_eps": 1e-5, "tie_word_embeddings": True}),
    "llama_mqa_gelu": (t.LlamaConfig, {**base, "num_key_value_heads": 1, "hidden_act": "gelu"}),
    "llama_linear": (t.LlamaConfig, scaled(rope_type="linear", factor=4.0)),
    "llama_dynamic": (t.LlamaConfig, scaled(rope_type="dynamic", factor=2.0)),
    "llama_yarn": (t.LlamaConfig, scaled(rope_type="yarn", factor=4.0, original_max_position_embeddings=24)),
    "llama_yarn_mscale": (t.LlamaConfig, scaled(rope_type="yarn", factor=8.0, original_max_position_embeddings=12, beta_fast=16.0,
                                                beta_slow=2.0, mscale=0.7, mscale_all_dim=1.2, truncate=False)),
    "llama_longrope": (t.LlamaConfig, scaled(rope_type="longrope", original_max_position_embeddings=48, factor=2.0,
                                             short_factor=[1.0, 1.3, 1.7, 2.5], long_factor=[2.0, 3.0, 4.0, 5.0])),
    "llama_llama3": (t.LlamaConfig, scaled(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                           original_max_position_embeddings=16)),
    "mistral_full": (t.MistralConfig, {**base, "sliding_window": None}),
    "mistral_window": (t.MistralConfig, {**base, "sliding_window": 5, "tie_word_embeddings": True}),
    "qwen2_window": (t.Qwen2Config, {**base, "use_sliding_window": True, "sliding_window": 4, "max_window_layers": 1}),
    "qwen2_tied": (t.Qwen2Config, {**base, "tie_word_embeddings": True, "rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}),
    "qwen3_tied": (t.Qwen3Config, {**base, "head_dim": 12, "tie_word_embeddings": True}),
    "qwen3_bias_window": (t.Qwen3Config, {**base, "head_dim": 24, "attention_bias": True, "use_sliding_window": True,
                                          "sliding_window": 6, "max_window_layers": 2}),
    "gemma_mqa": (t.GemmaConfig, {**base, "num_key_value_heads": 1, "head_dim": 24}),
    "gemma2_caps": (t.Gemma2Config, {**base, "head_dim": 8, "sliding_window": 5, "query_pre_attn_scalar": 31,
                                     "attn_logit_softcapping": 3.0, "final_logit_softcapping": 2.0}),
    "gemma2_uncapped": (t.Gemma2Config, {**base, "head_dim": 8, "sliding_window": 7, "attn_logit_softcapping": None,
                                         "final_logit_softcapping": None}),
    "gpt_neox_sequential": (t.GPTNeoXConfig, {**neox, "use_parallel_residual": False,
                                              "rope_parameters": {"rope_type": "default", "rope_theta": 10000.0, "partial_rotary_factor": 0.5}}),
    "gpt_neox_no_bias": (t.GPTNeoXConfig, {**neox, "attention_bias": False, "hidden_act": "gelu_new", "tie_word_embeddings": True}),
    "gpt2_inner": (t.GPT2Config, dict(vocab_size=199, n_embd=40, n_head=5, n_layer=3, n_positions=64, n_inner=72,
                                      initializer_range=0.25, bos_token_id=1, eos_token_id=2)),
    "gpt2_relu_unscaled": (t.GPT2Config, dict(vocab_size=150, n_embd=32, n_head=4, n_layer=2, n_positions=64, activation_function="relu",
                                              scale_attn_weights=False, initializer_range=0.15, tie_word_embeddings=False)),
}


def older(config):
    """The same config.json in the format of transformers 4."""
    config = dict(config)
    rope = dict(config.pop("rope_parameters", {}))
    theta, partial, kind = rope.pop("rope_theta", None), rope.pop("partial_rotary_factor", None), rope.pop("rope_type", "default")
    neox = config["model_type"] == "gpt_neox"
    if theta is not None:
        config["rotary_emb_base" if neox else "rope_theta"] = theta
    if partial is not None:
        config["rotary_pct" if neox else "partial_rotary_factor"] = partial
    config["rope_scaling"] = {"type": kind, **rope} if kind != "default" else None
    config["torch_dtype"] = config.pop("dtype", "float32")
    config.pop("layer_types", None)
    return config


for number, (name, (kind, settings)) in enumerate(MODELS.items()):
    torch.manual_seed(number)
    model = t.AutoModelForCausalLM.from_config(kind(**settings), attn_implementation="eager")
    for parameter_name, parameter in model.named_parameters():  # norms and biases that an error would change
        if parameter.dim() == 1:
            parameter.data += 0.1 * torch.randn_like(parameter)
    dtype = [torch.float32, torch.bfloat16, torch.float16][number % 3]
    shards = "20KB" if number % 2 else "5GB"
    folder = out / name
    model.to(dtype).save_pretrained(folder, max_shard_size=shards)
    subprocess.run([sys.executable, pathlib.Path(__file__).with_name("golden_model.py"), folder], check=True)
    config = json.loads((folder / "config.json").read_text())
    if number % 4 >= 2:
        (folder / "config.json").write_text(json.dumps(older(config), indent=2))
