"""Useful arithmetic of the phases of a training step, in floating-point operations (a multiplication and an addition are 2).

Counts the matmuls and attention that the algorithm needs, each once:

  forward       2 * (weights of a layer's matrices) * layers for a token; attention 4 * heads * head size for each (token, earlier
                or same token) of a layer; the head, 2 * hidden * vocabulary, only where its logits are used
  generation    a forward of every distinct prompt once, with the head at its last token; then a forward and a head for each token
                of each response but its last, which is drawn and never fed
  log-probs     a forward of prompt and response, the head at response tokens; for each pass that was made. With `shared_prompts`
                a prompt is forwarded once for all its responses, and counted so
  update        the same forward, and twice that for the gradients of inputs and of weights

Not counted: recomputation of values that were not kept (logits and attention scores in the backward pass), padding, prompts that
a method forwards once for each of their responses in generation, embeddings, norms, activations, softmax, sampling and the
optimizer (some 20 operations for each parameter). So a rate is the speed of the useful part, for every program.
"""
from dataclasses import dataclass


@dataclass
class Model:
    """The sizes of a decoder with gated feed-forward layers, from its config.json."""

    hidden: int
    ffn: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    vocab: int
    tied: bool

    @classmethod
    def of(cls, config):
        heads = config["num_attention_heads"]
        return cls(config["hidden_size"], config["intermediate_size"], config["num_hidden_layers"], heads,
                   config.get("num_key_value_heads", heads), config.get("head_dim") or config["hidden_size"] // heads,
                   config["vocab_size"], config.get("tie_word_embeddings", False))

    @property
    def trunk(self):
        """Weights of the layers' matrices."""
        attention = self.hidden * self.head_dim * (2 * self.heads + 2 * self.kv_heads)
        return self.layers * (attention + 3 * self.hidden * self.ffn)

    @property
    def parameters(self):
        """Weights of the matrices, without biases and norms."""
        return self.trunk + self.hidden * self.vocab * (1 if self.tied else 2)

    def forward(self, begin, end):
        """Tokens at positions begin to end - 1, each attending to itself and all earlier tokens; without the head."""
        pairs = (end * (end + 1) - begin * (begin + 1)) // 2
        return 2 * self.trunk * (end - begin) + 4 * self.layers * self.heads * self.head_dim * pairs

    def head(self, tokens):
        return 2 * self.hidden * self.vocab * tokens

    def group(self, prompt, response, samples, shared_prompts):
        """A prompt and its responses through the model; the last token predicts nothing."""
        own = self.forward(prompt, prompt + response - 1) + self.head(response)
        return (1 if shared_prompts else samples) * self.forward(0, prompt) + samples * own

    def generation(self, prompt, response, samples):
        prefill = self.forward(0, prompt) + self.head(1)
        return prefill + samples * (self.forward(prompt, prompt + response - 1) + self.head(response - 1))


def phases(model, prompts, response, samples, log_prob_passes, shared_prompts=False):
    """Operations of each phase of one step, for prompts of these lengths and responses of one length."""
    once = sum(model.group(prompt, response, samples, shared_prompts) for prompt in prompts)
    counts = {"generation": sum(model.generation(prompt, response, samples) for prompt in prompts),
              "log_probs": log_prob_passes * once, "update": 3 * once}
    return {**counts, "step": sum(counts.values())}
