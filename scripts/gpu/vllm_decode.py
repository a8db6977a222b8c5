"""Tokens per second of vLLM, for some numbers of rows: `vllm_decode.py SETTINGS.json`, which gpu-check writes and reads."""
import json
import random
import sys
import time

from vllm import LLM, SamplingParams


def main(path):
    with open(path) as file:
        settings = json.load(file)
    llm = LLM(model=settings["model"], skip_tokenizer_init=True, dtype=settings["dtype"], max_num_seqs=max(settings["rows"]),
              max_model_len=settings["prompt"] + settings["tokens"], enable_prefix_caching=False, gpu_memory_utilization=0.6)
    how = SamplingParams(temperature=1.0, ignore_eos=True, max_tokens=settings["tokens"], detokenize=False)
    draw = random.Random(1)
    with open(settings["out"], "w") as out:
        for rows in settings["rows"]:
            best = None
            for _ in range(3):
                prompts = [{"prompt_token_ids": [draw.randrange(2, settings["vocab"]) for _ in range(settings["prompt"])]}
                           for _ in range(rows)]
                start = time.perf_counter()
                made = llm.generate(prompts, how, use_tqdm=False)
                seconds = time.perf_counter() - start
                tokens = sum(len(each.outputs[0].token_ids) for each in made)
                best = max(best or 0.0, tokens / seconds)
            out.write(json.dumps({"rows": rows, "tokens_per_s": best}) + "\n")
            out.flush()


if __name__ == "__main__":
    main(sys.argv[1])
