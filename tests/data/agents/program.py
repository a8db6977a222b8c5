"""A program that leads a conversation with Python's library alone: it asks the model over HTTP, computes what the model calls for, and asks again.

It takes its time, as many seconds as DELAY says, another share of it for each turn."""

import json
import os
import time
import urllib.request
import zlib

CALCULATOR = {"type": "function", "function": {"name": "calculator", "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}}}}
CLIENT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def compute(arguments):
    try:
        first, second = json.loads(arguments)["expression"].split("*")
        return str(int(first) * int(second))
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        return "error: %s" % type(error).__name__


def run(row, base_url, api_key, model):
    messages, so_far, turns = list(row["prompt"]), [], 0
    while turns < 3:
        time.sleep(float(os.environ["DELAY"]) * (zlib.crc32(json.dumps(messages).encode()) % 7))
        body = {"model": model, "messages": messages, "tools": [CALCULATOR], "return_token_ids": True, "temperature": 1.0}
        headers = {"content-type": "application/json", "authorization": "Bearer " + api_key}
        with CLIENT.open(urllib.request.Request(base_url + "/chat/completions", json.dumps(body).encode(), headers)) as answer:
            answer = json.load(answer)
        # Every request continues with the ids that were read and sampled before.
        prompt = answer["prompt_token_ids"]
        assert prompt[: len(so_far)] == so_far, (so_far, prompt)
        so_far, turns = prompt + answer["choices"][0]["token_ids"], turns + 1
        message = answer["choices"][0]["message"]
        messages.append(message)
        if not message.get("tool_calls"):
            break
        for call in message["tool_calls"]:
            result = compute(call["function"]["arguments"])
            messages.append({"role": "tool", "tool_call_id": call["id"], "content": result})
    truth = row["reward_model"]["ground_truth"]
    return {"reward": float((messages[-1].get("content") or "").strip() == str(truth)), "served": len(so_far)}
