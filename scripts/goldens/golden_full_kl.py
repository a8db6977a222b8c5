"""Write tests/golden/full-kl.json: the exact divergence of rows of logits from a reference's, its gradient, and Σπ², as PyTorch
computes them in f64. tests/model/ops.rs compares the head with it.

    python scripts/goldens/golden_full_kl.py        (pip install torch)
"""
import json
import pathlib

import torch

VOCAB = 70  # more than one register file of lanes, and a remainder
TEMPERATURE = 0.7
generator = torch.Generator().manual_seed(20260611)


def normal(scale):
    return (torch.randn(VOCAB, generator=generator, dtype=torch.float64) * scale).round(decimals=4)


base, wide = normal(2.0), normal(2.0)
# Different, almost equal, equal, sure of one token, and probabilities that vanish in f32.
pairs = [(base, normal(2.0)), (wide, wide + normal(0.01)), (wide, wide.clone()), (base + 20 * torch.eye(VOCAB)[3], base),
         (normal(30.0), normal(30.0))]
logits = torch.stack([x for x, _ in pairs]).requires_grad_()
reference = torch.stack([y for _, y in pairs])
coefficients = torch.tensor([1.0, -0.5, 2.0, 0.25, 1.5], dtype=torch.float64)

log_p, log_q = (torch.log_softmax(x / TEMPERATURE, -1) for x in (logits, reference))
kl = torch.nn.functional.kl_div(log_q, log_p, reduction="none", log_target=True).sum(-1)
(coefficients * kl).sum().backward()
golden = {
    "torch": torch.__version__,
    "temperature": TEMPERATURE,
    "logits": logits.tolist(),
    "logits_ref": [[round(x, 4) for x in row] for row in reference.tolist()],
    "coefficients": coefficients.tolist(),
    "full_kl": kl.tolist(),
    "sum_pi_squared": log_p.exp().square().sum(-1).tolist(),
    "d_logits": [[float(f"{x:.9g}") for x in row] for row in logits.grad.tolist()],
}
path = pathlib.Path(__file__).parents[2] / "tests/golden/full-kl.json"
path.write_text(json.dumps(golden) + "\n")
print(f"{path.name}: torch {torch.__version__}, divergences {[f'{x:.6g}' for x in golden['full_kl']]}")
