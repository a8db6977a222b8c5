"""An agent as OpenRLHF has it, which takes its time: as many seconds as DELAY says, another share of it for each turn."""

import asyncio
import os
import zlib

from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor


class AgentInstance(AgentInstanceBase):
    async def reset(self, states, **kwargs):
        self.turns = 0
        return {"observation": states["observation"]}

    async def step(self, states, **kwargs):
        self.turns += 1
        said = states["observation_text"] + states["action_text"]
        await asyncio.sleep(float(os.environ["DELAY"]) * (zlib.crc32(said.encode()) % 7))
        return {"rewards": 0.25 * (self.turns % 2), "environment_feedback": "+1", "done": self.turns == 3}


class AgentExecutor(MultiTurnAgentExecutor):
    def __init__(self):
        super().__init__(AgentInstance)
