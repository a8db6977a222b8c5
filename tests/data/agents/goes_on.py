"""An agent as OpenRLHF has it: it says " 1" after each turn, and ends the episode after the third."""

from openrlhf.utils.agent import AgentInstanceBase, MultiTurnAgentExecutor


class AgentInstance(AgentInstanceBase):
    async def reset(self, states, **kwargs):
        self.turns = 0
        return {"observation": states["observation"]}

    async def step(self, states, **kwargs):
        self.turns += 1
        reward = float(states["label"] in states["action_text"])
        return {"rewards": reward, "scores": reward, "environment_feedback": " 1", "done": self.turns == 3}


class AgentExecutor(MultiTurnAgentExecutor):
    def __init__(self):
        super().__init__(AgentInstance)
