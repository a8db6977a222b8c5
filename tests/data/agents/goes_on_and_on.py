"""A tool, an environment, an agent and a program that go on as long as they may: bounds alone end their conversations. Each answers with the
text in SAYS, which may be control tokens; a call of "fail" raises it."""

import json
import os
import urllib.error
import urllib.request

from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor

SAYS = os.environ.get("SAYS", "abcdefghijklmnopqrstuvwxyz0123456789")
CLIENT = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def calculator(expression: str) -> str:
    """
    Answers.

    Args:
        expression: What to compute.
    """
    if expression == "fail":
        raise ValueError(SAYS)
    if expression == "long":
        raise ValueError("x" * 5_000_000)
    return SAYS


class Toy:
    def reset(self, **row):
        return SAYS if "said" in os.environ.get("PLACE", "") else None

    def calculator(self, expression: str) -> str:
        """
        Answers.

        Args:
            expression: What to compute.
        """
        return calculator(expression)


class AgentInstance(AgentInstanceBase):
    async def reset(self, states, **kwargs):
        return {"observation": states["observation"]}

    async def step(self, states, **kwargs):
        return {"rewards": 0.5, "environment_feedback": SAYS + "\n", "done": False}


class AgentExecutor(MultiTurnAgentExecutor):
    def __init__(self):
        super().__init__(AgentInstance)


def run(row, base_url, api_key, model):
    """Goes on until it is refused, perhaps from a history that it brings."""
    said = {"role": "tool", "tool_call_id": "c", "content": SAYS}
    history = list(row["prompt"])
    if os.environ.get("PLACE") == "history":
        history += [{"role": "assistant", "content": "1"}, said]
    while True:
        body = {"model": model, "messages": history}
        headers = {"content-type": "application/json", "authorization": "Bearer " + api_key}
        try:
            with CLIENT.open(urllib.request.Request(base_url + "/chat/completions", json.dumps(body).encode(), headers)) as answer:
                message = json.load(answer)["choices"][0]["message"]
        except urllib.error.HTTPError:
            return 0.5
        history += [message, said]
        if len(history) > 40:
            return 0.25
