"""Write tests/golden/rope.json: rotary frequencies, and the factor on cos and sin, of transformers for each kind of rope
parameters. tests/model/families.rs compares crates/model/src/rope.rs with it.

    python scripts/goldens/golden_rope.py        (pip install torch transformers)
"""
import json
import pathlib

from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

KINDS = [
    {"rope_type": "linear", "factor": 4.0},
    {"rope_type": "dynamic", "factor": 2.0},
    {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 64},
    {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64},
    {"rope_type": "yarn", "factor": 16.0, "original_max_position_embeddings": 128, "beta_fast": 20.0, "beta_slow": 2.0,
     "mscale": 0.7, "mscale_all_dim": 1.3, "truncate": False},
    {"rope_type": "yarn", "factor": 2.0, "original_max_position_embeddings": 4096, "attention_factor": 1.5},
    {"rope_type": "longrope", "original_max_position_embeddings": 64, "factor": 4.0,
     "short_factor": [1.0, 1.1, 1.3, 1.7, 2.0, 2.5, 3.0, 4.0], "long_factor": [4.0] * 8},
]
cases = []
for kind in KINDS:
    config = LlamaConfig(hidden_size=64, num_attention_heads=4, max_position_embeddings=256,
                         rope_parameters={"rope_theta": 20000.0, **kind})
    frequencies, factor = ROPE_INIT_FUNCTIONS[kind["rope_type"]](config, "cpu")
    cases.append({"rope_parameters": dict(config.rope_parameters), "frequencies": frequencies.tolist(), "factor": factor})
path = pathlib.Path(__file__).parents[2] / "tests/golden/rope.json"
path.write_text(json.dumps({"head_dim": 16, "max_position_embeddings": 256, "cases": cases}, indent=1) + "\n")
print(path, len(cases))
