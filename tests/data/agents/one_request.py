"""Programs that ask the model once, for a continuation of the row's text, and score it in two ways."""

import json
import urllib.request

CLIENT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def answer(row, base_url, api_key):
    headers = {"content-type": "application/json", "authorization": "Bearer " + api_key}
    body = json.dumps({"messages": list(row["prompt"])}).encode()
    with CLIENT.open(urllib.request.Request(base_url + "/chat/completions", body, headers)) as reply:
        return json.load(reply)["choices"][0]["message"]["content"]


def run(row, base_url, api_key):
    return len(answer(row, base_url, api_key)) / 10


def other(row, base_url, api_key):
    return -len(answer(row, base_url, api_key)) / 10
