"""Reward functions that note their arguments, a tool, an environment and programs, for tests/binary/transcripts.rs."""

import json
import os
import time
import urllib.request

CLIENT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def note(style, **arguments):
    with open(os.environ["HEARD"], "a") as file:
        file.write(json.dumps([style, arguments]) + "\n")


def verl(data_source, solution_str, ground_truth, extra_info=None):
    note("verl", text=solution_str, messages=extra_info.get("messages"))
    return 0.0


def trl(prompts, completions, completion_ids, **columns):
    note("trl", prompts=prompts, completions=completions, ids=completion_ids)
    return [float(len(completion[-1]["content"])) for completion in completions]


def openrlhf(queries, prompts, labels):
    note("openrlhf", query=queries[0], prompt=prompts[0])
    return 0.0


def calculator(expression: str) -> str:
    """Computes a product.

    Args:
        expression: two numbers with * between.
    """
    time.sleep(float(os.environ.get("SLOW", "0")))
    first, second = expression.split("*")
    return str(int(first) * int(second))


class Game:
    def reset(self, **columns):
        return "!"

    def calculator(self, expression: str) -> str:
        """Computes a product.

        Args:
            expression: two numbers with * between.
        """
        return calculator(expression)


def ask(base_url, api_key, place, **body):
    headers = {"content-type": "application/json", "authorization": "Bearer " + api_key}
    with CLIENT.open(urllib.request.Request(base_url + place, json.dumps(body).encode(), headers)) as reply:
        return json.load(reply)["choices"][0]


def chats(row, base_url, api_key):
    """Says something of its own first, as a few shots, and answers twice."""
    messages = [{"role": "user", "content": "1*1="}, {"role": "assistant", "content": "1"}] + list(row["prompt"])
    for _ in range(2):
        messages.append(ask(base_url, api_key, "/chat/completions", messages=messages)["message"])
        messages.append({"role": "user", "content": "Sure?"})
    ask(base_url, api_key, "/chat/completions", messages=messages)


def fails(row, base_url, api_key):
    ask(base_url, api_key, "/chat/completions", messages=list(row["prompt"]))
    raise ValueError("it fell over")


def completes(row, base_url, api_key):
    """Continues the text of a chat that it writes itself."""
    text = "<|im_start|>user\n6*7=<|im_end|>\n<|im_start|>assistant\n"
    for _ in range(2):
        choice = ask(base_url, api_key, "/completions", prompt=text, skip_special_tokens=False)
        text += choice["text"] + "<|im_end|>\n<|im_start|>user\nSure?<|im_end|>\n<|im_start|>assistant\n"
