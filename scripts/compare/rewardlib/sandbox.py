"""Programs and test cases for the comparison with verl's sandbox_fusion, and a service that scores for both.

`serve()` starts the service and returns its address and the list of its requests. A program with `# RUN` in it is really run;
any other program has the service's replies in it: `# SAYS [reply, …]`, and the input selects one. `case(random)` is a response
and its ground truth."""

import http.server
import json
import subprocess
import sys
import threading


def reply(status="Success", run="Finished", out="1\n", code=0, compiled=None, compile_code=0, http=200, **more):
    run = run and {"status": run, "stdout": out, "stderr": "", "return_code": code, "execution_time": 0.1}
    compiled = compiled and {"status": compiled, "stderr": "", "return_code": compile_code, "execution_time": 0.1}
    return {"http": http, "body": {"status": status, "message": "", "compile_result": compiled, "run_result": run, **more}}


PASSES = reply()
VERDICTS = [
    PASSES, PASSES, PASSES, PASSES, reply(out="1"), reply(out="1\n\n"), reply(out="2\n"), reply(out=None), reply(out=""), reply(out="1 \n"), reply(compiled="Finished"),
    reply("Failed", "Error", code=1), reply("Failed", "Finished", code=1), reply("Failed", "TimeLimitExceeded", code=None), reply("Failed", "Finished", code=None),
    reply("Failed", None, compiled="Error"), reply("Failed", None, compiled="TimeLimitExceeded"), reply("Failed", None, compiled="Finished", compile_code=1), reply("Failed", "Error", compiled="Finished", code=1),
]
NO_VERDICTS = [
    reply("SandboxError"), reply("Failed", "Finished"), reply("Failed", None), reply("Failed", None, compiled="Finished"), reply("Success", "Error"), reply("Success", None), reply("Odd"), reply(None), reply(http=500), reply(http=404),
    {"http": 200, "body": {}}, {"http": 200, "body": []}, {"http": 200, "text": "no JSON"},
]
RETURNS = ["a", "[a, a]", "{'k': a}", "(a, 'x')", "None", "a == a", "str(a)", "1.5", "undefined", "{1}", "[{1}]", "sorted([3, a, 1])", "sqrt(16)", "Counter('aab')", "deque([a])", "1 / 0", "datetime.date(2020, 1, 2)", "sys.exit(3)", "b'x'", "math.floor(a)", "pow(2, a)", "open", "Optional[int]", "reduce(lambda x, y: x + y, [1, a])"]
FENCES = ["```python\n{}\n```", "Sure:\n```python\nbad\n```\nbetter:\n```python\n{}\n``` done", "```\n{}\n```", "```py\n{}\n```", "```python3\n{}\n```", "```C++\n{}\n```", "```{}```", "```python\n{}", "```\n{}", "text ```\n\n{}\n``` more ```\nother\n```", "{}", "``{}``", "``` python \n{}\n```", "```é\n{}\n```"]


def run(payload):
    try:
        done = subprocess.run([sys.executable, "-c", payload["code"]], input=payload["stdin"] or "", capture_output=True, text=True, timeout=payload["run_timeout"])
        return reply("Success" if done.returncode == 0 else "Failed", out=done.stdout, code=done.returncode)
    except subprocess.TimeoutExpired:
        return reply("Failed", "TimeLimitExceeded")


def serve():
    asked = []

    class Service(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            payload = json.loads(self.rfile.read(int(self.headers["content-length"])))
            asked.append(payload)
            if "# SAYS" in payload["code"]:
                says = json.loads(payload["code"].split("# SAYS ")[1].split("\n")[0])
                answer = says[sum(map(ord, payload["stdin"] or "")) % len(says)]
            else:
                answer = run(payload) if "# RUN" in payload["code"] else PASSES
            body = (json.dumps(answer["body"]) if "body" in answer else answer["text"]).encode()
            self.send_response(answer["http"])
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}/run_code", asked


def told(random):
    """A program with the service's replies in it."""
    verdicts = VERDICTS[:11] if random.random() < 0.6 else VERDICTS if random.random() < 0.8 else VERDICTS[:11] + NO_VERDICTS
    says = random.choices(verdicts, k=random.randint(1, 7))
    count = random.choice([1, 2, 3, 5, 9, 10, 11, 14])
    value = lambda: random.choice([str(random.randint(0, 99)), str(random.randint(0, 99)) + "\n", "é'\"\n", random.randint(0, 99), 0.1, 1e22, 1e-7, True, None, [1, "a'b", None, 2.0], {"k": [False, "\n\t\\"]}, ""])
    expected = lambda: random.choice(["1", "1\n", "1", "1", "2", 1, 1.0, "", None, True, [1]])
    tests = {"inputs": [value() for _ in range(count)], "outputs": [expected() for _ in range(count)]}
    if random.random() < 0.15:
        tests["assert_case"] = [f"assert f({i}) == {i}" for i in range(count)]
        for key in random.choice([[], ["inputs"], ["outputs"], ["inputs", "outputs"]]):
            del tests[key]
    return f"def f(x): return x\n# SAYS {json.dumps(says)}", tests


def ran(random):
    """A program that is run."""
    returned = random.choice(RETURNS)
    count = random.randint(1, 2)
    numbers = [random.randint(0, 9) for _ in range(count)]
    kind = random.randrange(4)
    if kind == 0:
        tests = {"inputs": [f"{n}\n" for n in numbers], "outputs": [random.choice([str(n + 1), n + 1, "7"]) for n in numbers]}
        return "# RUN\nprint(int(input()) + 1)", tests
    if kind == 1:
        return "# RUN\ndef f(x):\n    return x * 2", {"assert_case": [f"assert f({n}) == {random.choice([2 * n, 2 * n, 3])}" for n in numbers]}
    body = f"def f(a, b=0):\n    return {returned}"
    if kind == 2:
        body = "class Solution:\n    def f(self, a, b=0):\n        return " + returned
    lines = lambda n: random.choice([str(n), f"{n}\n{n}", f"{n}\n", "", "oops", f'"{n}"', f"[{n}]"])
    outputs = [random.choice(["[1, 3, 5]", "4.0", "null", "true", "1.5", str(n), "", f"[{n}, {n}]", f'[{n}, "x"]', f'{{"k": {n}}}', "2020-01-02", '{"a": 2, "b": 1}', "{1}"]) for n in numbers]
    return "# RUN\n" + body, {"inputs": [lines(n) for n in numbers], "outputs": outputs, "fn_name": random.choice(["f", "f", "f", "g", "sorted"])}


BAD = ["no JSON", "[]", "null", "{}", {"inputs": ["1"]}, {"inputs": [], "outputs": []}, {"inputs": ["1"], "outputs": []}, {"inputs": ["1"], "outputs": ["1"], "assert_case": []}, "3"]


def case(random):
    program, tests = (told if random.random() < 0.85 else ran)(random)
    if random.random() < 0.02:
        tests = random.choice(BAD)
    elif random.random() < 0.5:
        tests = json.dumps(tests)
    return random.choice(FENCES[:4] * 3 + FENCES).format(program), tests
