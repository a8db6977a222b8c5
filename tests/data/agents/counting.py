"""A tool of verl's kind that never answers the same twice: it notes each call in the file COUNTED, and answers and rewards with the number of calls
so far. In the step that HANGS names, every second conversation hangs before its call is noted."""

import fcntl
import os
import time

from verl.tools.base_tool import BaseTool


class Counting(BaseTool):
    async def execute(self, instance_id, parameters, agent_data=None, **kwargs):
        name = agent_data.request_id
        step, sample = name.split("-")[1], int(name.split("-")[3])
        time.sleep(float(os.environ.get("DELAY") or 0))
        if step == os.environ.get("HANGS") and sample % 2 == 1:
            time.sleep(1000)
        with open(os.environ["COUNTED"], "a+") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write("%s turn %d\n" % (name, agent_data.assistant_turns))
            file.flush()
            file.seek(0)
            count = len(file.readlines())
        return "%d" % count, count % 2, {}
