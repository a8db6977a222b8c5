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


MIXED = ["sliding_attention", "full_attention", "sliding_attention"]

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
    "gemma3_linear": (t.Gemma3TextConfig, {**base, "head_dim": 20, "sliding_window": 5, "query_pre_attn_scalar": 31, "layer_types": MIXED,
                                           "final_logit_softcapping": 3.0, "tie_word_embeddings": False,
                                           "rope_parameters": {"full_attention": {"rope_type": "linear", "rope_theta": 5e4, "factor": 8.0},
                                                               "sliding_attention": {"rope_type": "default", "rope_theta": 3e3}}}),
    "gemma3_mqa_bias": (t.Gemma3TextConfig, {**base, "num_key_value_heads": 1, "head_dim": 8, "attention_bias": True, "sliding_window": 7}),
    "smollm3_window": (t.SmolLM3Config, {**base, "use_sliding_window": True, "sliding_window": 5, "no_rope_layer_interval": 2,
                                         "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": False}),
    "ministral_head_dim": (t.MinistralConfig, {**base, "head_dim": 12, "sliding_window": 6, "layer_types": MIXED, "tie_word_embeddings": True}),
    "ministral3_growing": (t.Ministral3Config, {
        **scaled(rope_type="yarn", factor=4.0, original_max_position_embeddings=8, llama_4_scaling_beta=0.3, mscale=1.0, mscale_all_dim=1.0,
                 beta_fast=32.0, beta_slow=1.0), "num_key_value_heads": 1, "head_dim": 12, "sliding_window": 11}),
    "phi3_longrope": (t.Phi3Config, {**scaled(rope_type="longrope", partial_rotary_factor=0.75, short_factor=[1.0, 1.3, 1.7],
                                              long_factor=[2.0, 3.0, 4.0]), "original_max_position_embeddings": 48,
                                     "num_key_value_heads": 3, "sliding_window": 6, "tie_word_embeddings": True}),
    "phi3_mha": (t.Phi3Config, {**base, "num_key_value_heads": 6, "rms_norm_eps": 1e-3}),
    "olmo2_mqa_bias": (t.Olmo2Config, {**base, "num_key_value_heads": 1, "attention_bias": True, "tie_word_embeddings": True}),
    "olmo3_yarn": (t.Olmo3Config, {**base, "sliding_window": 5, "layer_types": MIXED, "rope_parameters": {
        "full_attention": {"rope_type": "yarn", "rope_theta": 5e5, "factor": 4.0, "original_max_position_embeddings": 24},
        "sliding_attention": {"rope_type": "default", "rope_theta": 5e5}}}),
    "granite_bias": (t.GraniteConfig, {**base, "attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "embedding_multiplier": 5.0,
                                       "residual_multiplier": 0.4, "attention_multiplier": 0.2, "logits_scaling": 3.0}),
    "glm_whole": (t.GlmConfig, {**scaled(rope_type="default", partial_rotary_factor=1.0), "head_dim": 12, "attention_bias": False}),
    "glm_mha_tied": (t.GlmConfig, {**base, "num_key_value_heads": 6, "head_dim": 8, "tie_word_embeddings": True}),
    "glm4_quarter": (t.Glm4Config, {**scaled(rope_type="default", partial_rotary_factor=0.25), "head_dim": 16, "num_key_value_heads": 1}),
    "arcee_bias_yarn": (t.ArceeConfig, {**scaled(rope_type="yarn", factor=4.0, original_max_position_embeddings=24), "attention_bias": True,
                                        "mlp_bias": True, "head_dim": 12}),
    "seed_oss_bias": (t.SeedOssConfig, {**base, "attention_out_bias": True, "mlp_bias": True, "head_dim": 20, "residual_dropout": 0.0}),
    "exaone4_full": (t.Exaone4Config, {**base, "sliding_window": None, "layer_types": ["full_attention"] * 3, "tie_word_embeddings": True}),
    "exaone4_window": (t.Exaone4Config, {**scaled(rope_type="llama3", factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                                                  original_max_position_embeddings=16), "sliding_window": 5, "layer_types": MIXED}),
    "cohere2_bias": (t.Cohere2Config, {**base, "attention_bias": True, "sliding_window": 5, "layer_types": MIXED, "logit_scale": 0.3}),
    "cohere2_untied": (t.Cohere2Config, {**base, "sliding_window": 9, "sliding_window_pattern": 2, "tie_word_embeddings": False, "layer_norm_eps": 1e-3}),
    "nanochat_mqa": (t.NanoChatConfig, {**scaled(rope_type="yarn", factor=4.0, original_max_position_embeddings=24), "num_key_value_heads": 1,
                                        "attention_bias": True, "final_logit_softcapping": None}),
    "gemma4_shared": (t.Gemma4TextConfig, {
        **base, "num_hidden_layers": 5, "layer_types": [*MIXED, "sliding_attention", "full_attention"], "head_dim": 8, "global_head_dim": 12,
        "num_kv_shared_layers": 2, "use_double_wide_mlp": True, "hidden_size_per_layer_input": 4, "vocab_size_per_layer_input": 211,
        "sliding_window": 5, "final_logit_softcapping": 3.0}),
    "gemma4_keys": (t.Gemma4TextConfig, {
        **base, "head_dim": 20, "global_head_dim": 16, "attention_k_eq_v": True, "num_global_key_value_heads": 3, "attention_bias": True,
        "hidden_size_per_layer_input": 0, "sliding_window": 7, "tie_word_embeddings": False, "rope_parameters": {
            "full_attention": {"rope_type": "linear", "rope_theta": 5e4, "factor": 8.0},
            "sliding_attention": {"rope_type": "default", "rope_theta": 3e3}}}),
    "falcon_h1_factors": (t.FalconH1Config, {
        **base, "mamba_d_ssm": 56, "mamba_n_heads": 7, "mamba_d_state": 12, "mamba_chunk_size": 16, "mamba_rms_norm": True,
        "mamba_norm_before_gate": False, "projectors_bias": True, "mlp_bias": True, "tie_word_embeddings": True, "lm_head_multiplier": 0.7,
        "embedding_multiplier": 2.0, "mlp_multipliers": [0.8, 1.3], "key_multiplier": 0.6, "attention_out_multiplier": 0.9,
        "attention_in_multiplier": 1.2, "ssm_multipliers": [0.7, 1.1, 0.9, 1.3, 0.8], "ssm_in_multiplier": 1.25,
        "ssm_out_multiplier": 0.6}),
    "granite4_attention": (t.GraniteMoeHybridConfig, {
        **base, "num_local_experts": 0, "shared_intermediate_size": 72, "layer_types": ["full_attention"] * 3, "attention_bias": True,
        "position_embedding_type": "rope", "attention_multiplier": 0.2, "mamba_n_heads": 8}),
    "granite4_experts": (t.GraniteMoeHybridConfig, {
        **base, "num_local_experts": 6, "num_experts_per_tok": 2, "intermediate_size": 24, "shared_intermediate_size": 40,
        "layer_types": ["linear_attention", "full_attention", "linear_attention"], "mamba_n_heads": 8, "mamba_n_groups": 2,
        "mamba_d_state": 12, "mamba_proj_bias": True, "mamba_chunk_size": 16, "time_step_limit": (0.05, 2.0),
        "embedding_multiplier": 3.0, "residual_multiplier": 0.6, "attention_multiplier": 0.3, "logits_scaling": 1.5}),
}


def older(config):
    """The same config.json in the format of transformers 4."""
    config = dict(config)
    rope = dict(config.pop("rope_parameters", {}))
    if "full_attention" in rope:
        config["rope_local_base_freq"] = rope["sliding_attention"]["rope_theta"]
        rope = dict(rope["full_attention"])
        if config["model_type"] == "olmo3":
            config.pop("rope_local_base_freq")
    theta, partial, kind = rope.pop("rope_theta", None), rope.pop("partial_rotary_factor", None), rope.pop("rope_type", "default")
    neox = config["model_type"] == "gpt_neox"
    if theta is not None:
        config["rotary_emb_base" if neox else "rope_theta"] = theta
    if partial is not None:
        config["rotary_pct" if neox else "partial_rotary_factor"] = partial
    config["rope_scaling"] = {"type": kind, **rope} if kind != "default" else None
    config["torch_dtype"] = config.pop("dtype", "float32")
    if config["model_type"] not in ("gemma3_text", "ministral", "olmo3", "exaone4", "cohere2", "granitemoehybrid"):
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
    if number % 4 >= 2 and config["model_type"] != "gemma4_text":  # transformers 4 does not have it.
        (folder / "config.json").write_text(json.dumps(older(config), indent=2))
