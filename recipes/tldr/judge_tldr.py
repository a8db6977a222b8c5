"""A judge of summaries: 1 if a language model prefers the given summary to the reference, 0 if it prefers the reference.

The question and the parsing of the reply are from OpenAIPairwiseJudge in TRL, which TRL's example judge_tldr.py uses. The judge
is any server with OpenAI's chat protocol; only Python's standard library is needed. `trainer eval` calls `win_rate` with the
summaries of a file (recipes/tldr/judge.yaml). In training, `win_rate` works as a reward, too.
"""

import concurrent.futures
import json
import os
import random
import time
import urllib.error
import urllib.request

QUESTION = '''I require a leaderboard for various large language models. I'll provide you with prompts given to these models and their corresponding outputs. Your task is to assess these responses, and select the model that produces the best output from a human perspective.

## Instruction

{
    "instruction": """%s""",
}

## Model Outputs

Here are the unordered outputs from the models. Each output is associated with a specific model, identified by a unique model identifier.

{
    {
        "model_identifier": "0",
        "output": """%s"""
    },
    {
        "model_identifier": "1",
        "output": """%s"""
    }
}

## Task

Evaluate the models on the basis of the quality and relevance of their results, and select the model that generated the best result. Reply with the identifier of the best model. Our evaluation will only take into account the first character of your answer, so make sure it contains only one of the identifiers and nothing else (no quotation marks, no spaces, no new lines, ...).
'''


def win_rate(prompts, completions, reward_model, model="gpt-4o-mini", base_url="https://api.openai.com/v1",
             key_variable="OPENAI_API_KEY", threads=8, attempts=5, **columns):
    """Returns the verdict on each completion against reward_model["ground_truth"]; None if the judge names neither."""

    def judged(index):
        ours, theirs = text(completions[index]), str(reward_model[index]["ground_truth"]).strip()
        # The order is random, because judges have a position bias.
        first = orders[index]
        pair = (ours, theirs) if first else (theirs, ours)
        answer = ask(QUESTION % (text(prompts[index]), *pair), model, base_url, os.environ.get(key_variable), attempts)
        return None if answer not in ("0", "1") else float((answer == "0") == first)

    orders = [random.random() < 0.5 for _ in completions]
    with concurrent.futures.ThreadPoolExecutor(threads) as pool:
        return list(pool.map(judged, range(len(completions))))


def text(messages):
    """Returns a prompt or a completion as text: the last message of a conversation."""
    return str(messages[-1]["content"] if isinstance(messages, list) else messages).strip()


def ask(question, model, base_url, key, attempts):
    """Returns the judge's reply, one token. Temporary failures are retried."""
    body = {"model": model, "messages": [{"role": "user", "content": question}], "max_tokens": 1, "temperature": 0}
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    request = urllib.request.Request(f"{base_url.rstrip('/')}/chat/completions", json.dumps(body).encode(), headers)
    for attempt in range(attempts):
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return (json.load(answer)["choices"][0]["message"]["content"] or "").strip()
        except urllib.error.HTTPError as error:
            if error.code not in (408, 429) and error.code < 500 or attempt + 1 == attempts:
                raise RuntimeError(f"the judge replied with status {error.code}") from None
        except urllib.error.URLError as error:
            if attempt + 1 == attempts:
                raise RuntimeError(f"the judge does not reply: {error.reason}") from None
        time.sleep(2**attempt)
