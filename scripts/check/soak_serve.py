#!/usr/bin/env python3
"""Keeps `trainer serve` under many clients, good and bad, and checks replies and memory over time.

    python3 scripts/check/soak_serve.py --trainer target/release/trainer [--seconds 1800] [--clients 500] [--model FOLDER]
                                        [--markdown docs/benchmarks/reliability.md]

Good clients ask for answers, whole and streamed, lead conversations with tools, and read recorded conversations. They compare
each reply with the first of its kind. Bad ones leave while they wait or read, read nothing, send huge, malformed or foreign
requests, or names, messages and tools that are different each time. Exits with 1 if a good client got a wrong reply, or if the
memory between requests grew by more than 5 % after the first third; the caches fill in the first minutes. Needs only Python.
"""
import argparse
import asyncio
import collections
import json
import os
import pathlib
import random
import re
import resource
import statistics
import subprocess
import sys
import textwrap
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
# The share of each kind of client, in percent.
KINDS = {"whole": 14, "streamed": 14, "tools": 10, "reader": 2, "leaving": 20, "silent reader": 6, "huge": 8, "many values": 6, "names": 10, "malformed": 6, "silent": 4}
GOOD = ("whole", "streamed", "tools", "reader")
PAUSE = 4.0
TOOLS = [{"type": "function", "function": {"name": "calculator", "parameters": {"type": "object", "properties": {"expression": {"type": "string"}}}}}]
# The memory between requests may grow after the first third by this share, and by this many MB.
SHARE, SLACK = 0.05, 4.0
HEADING = "## A model under many clients"


class Server:
    def __init__(self, options):
        trainer = str(pathlib.Path(options.trainer).resolve())
        command = [trainer, "serve", "--model", options.model, "--port", "0", "--tool-format", "hermes", "--recorded-tokens", "200000"]
        self.log = open(options.log, "wb") if options.log else subprocess.DEVNULL
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=self.log, text=True)
        line = self.process.stdout.readline()
        self.host, port = re.search(r"http://([0-9.]+):(\d+)/", line).groups()
        self.port = int(port)
        self.expected, self.wrong, self.times = {}, [], []
        self.seen, self.memory, self.number = collections.Counter(), [], 0

    def next(self):
        self.number += 1
        return self.number

    def rss(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def check(self, question, reply):
        """Compares a reply with the first one to the same question."""
        if reply != self.expected.setdefault(question, reply):
            self.wrong.append(f"{question}: {reply!r} in place of {self.expected[question]!r}")

    async def open(self):
        return await asyncio.open_connection(self.host, self.port, limit=1 << 20)


def request(path, body=None, method=None):
    body = b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    method = method or ("POST" if body else "GET")
    return f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\n\r\n".encode() + body


async def answer(reader):
    """Reads a reply: its status and its body."""
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    status = int(head.split()[1])
    if b"transfer-encoding: chunked" not in head:
        length = re.search(rb"content-length: (\d+)", head)
        return status, await reader.readexactly(int(length[1]) if length else 0)
    body = b""
    while size := int(await reader.readline(), 16):
        body += (await reader.readexactly(size + 2))[:-2]
    await reader.readline()
    return status, body


async def ask(server, connection, path, body=None, method=None):
    """Sends a request of a good client until it is not refused for lack of room."""
    reader, writer = connection
    while True:
        begun = time.monotonic()
        writer.write(request(path, body, method))
        status, reply = await asyncio.wait_for(answer(reader), 60)
        server.seen[f"good: {status}"] += 1
        if status != 503:
            server.times.append(time.monotonic() - begun)
            return status, reply
        await asyncio.sleep(1)


def chat(content, **more):
    return {"messages": [{"role": "user", "content": content}], "temperature": 0, "max_tokens": 12, **more}


async def whole(server, connection):
    question = f"{random.randint(1, 9)}*{random.randint(1, 9)}="
    status, body = await ask(server, connection, "/v1/chat/completions", chat(question))
    server.check(question, (status, json.loads(body)["choices"][0]["message"]["content"]))


async def streamed(server, connection):
    question = f"{random.randint(1, 9)}*{random.randint(1, 9)}="
    status, body = await ask(server, connection, "/v1/chat/completions", chat(question, stream=True))
    events = [event[len("data: "):] for event in body.decode().split("\n\n") if event]
    chunks = [json.loads(event) for event in events[:-1]]
    text = "".join(chunk["choices"][0]["delta"].get("content") or "" for chunk in chunks)
    server.check(question, (status if events[-1] == "[DONE]" else "cut", text))


async def tools(server, connection):
    """Two turns of a conversation, its record, and its end."""
    key, question = f"soak-{server.next()}", f"{random.randint(1, 9)}*{random.randint(1, 9)}="
    body = chat(question, tools=TOOLS, conversation=key, return_token_ids=True)
    _, reply = await ask(server, connection, "/v1/chat/completions", body)
    first = json.loads(reply)["choices"][0]
    server.check(f"tools {question}", first["token_ids"])
    body["messages"] += [first["message"], {"role": "tool", "tool_call_id": "c", "content": "7"}]
    _, reply = await ask(server, connection, "/v1/chat/completions", body)
    second = json.loads(reply)["choices"][0]
    server.check(f"tools {question}, then 7", second["token_ids"])
    status, reply = await ask(server, connection, f"/v1/conversations/{key}", method="DELETE")
    if status == 404:  # Forgotten for newer conversations.
        server.seen["good: forgotten"] += 1
        return
    [one] = json.loads(reply)["trajectories"]
    sampled = [id for id, sampled in zip(one["ids"], one["sampled"]) if sampled]
    server.check(f"record of {question}", sampled)
    if sampled != first["token_ids"] + second["token_ids"]:
        server.wrong.append(f"{key}: {sampled} is recorded")


async def reader(server, connection):
    """Many branches of one conversation, and their record."""
    await ask(server, connection, "/v1/completions", {"prompt": f"{server.next()}+1=", "max_tokens": 2, "conversation": "branches"})
    status, reply = await ask(server, connection, "/v1/conversations/branches")
    if status not in (200, 404) or status == 200 and not json.loads(reply)["trajectories"]:
        server.wrong.append(f"branches: {status} {reply[:100]}")


async def good(server, kind, until):
    connection = await server.open()
    try:
        while time.monotonic() < until:
            await globals()[kind](server, connection)
            await asyncio.sleep(random.uniform(0.5, 1.5) * PAUSE)
    finally:
        connection[1].close()


def endless(**more):
    return {"prompt": "1+1=", "max_tokens": 250, "min_tokens": 250, "n": random.choice([1, 4, 16]), **more}


def huge_body():
    text, place = "A" * random.choice([1 << 20, 4 << 20, 15 << 20]), random.choice(["x", "model", "user", "message", "tool", "name", "content"])
    body = chat("1+1=", tools=TOOLS, conversation=f"huge {random.random()}")
    if place in ("x", "model", "user"):
        body[place] = text
    elif place == "tool":
        body["tools"] = [{"type": "function", "function": {"name": "f", "description": text}}]
    elif place == "name":
        body[text] = 1
    else:
        body["messages"][0]["content" if place == "content" else "x"] = text
    return body


def many_values():
    count = random.choice([10_000, 150_000, 1_500_000])
    part = random.choice(['"x":[%s[]]', '"messages":[%s{"role":"user","content":"1"}]', '"tools":[%s{}]', '"prompt":[%s1]'])
    entry = part.split("%s")[1][:-1]
    return ("{" + part % ((entry + ",") * count) + "}").encode()[:15 << 20]


def names():
    text = "".join(random.choices("abcdefghij<|im_end|>", k=random.choice([10, 1000, 60_000])))
    body = chat("1+1=", conversation=text[:400], max_tokens=2)
    body[random.choice(["user", text])] = text
    body["messages"][0][random.choice(["name", "x", text])] = text
    if random.random() < 0.5:
        body["tools"] = [{"type": "function", "function": {"name": text[:64], "description": text}}]
        body["chat_template_kwargs"] = {text: text}
    return body


async def bad(server, kind, until):
    reader, writer = await server.open()
    try:
        if kind == "leaving":
            body = endless(stream=random.random() < 0.5)
            if random.random() < 0.3:
                body = chat("1+1=", x="A" * (8 << 20))
            writer.write(request("/v1/chat/completions" if "messages" in body else "/v1/completions", body))
            await asyncio.sleep(random.uniform(0, 1))
            writer.transport.abort()
            return "left"
        if kind == "silent reader":
            writer.write(request("/v1/completions", endless(stream=True, logprobs=0)) * 3)
            await asyncio.sleep(random.uniform(5, 20))
            return "read nothing"
        if kind == "silent":
            await asyncio.wait_for(reader.read(), max(1, until - time.monotonic()))
            return "closed"
        if kind == "malformed":
            writer.write(random.choice([b"\x16\x03\x01" + os.urandom(200), b"GET /\r\n\r\n", request("/v1/completions", b'{"prompt": "1'), b"PRI * HTTP/2.0\r\n\r\n", request("/v1/completions", {"prompt": [[1], "a", {}]})]))
        else:
            body = {"huge": huge_body, "many values": many_values, "names": names}[kind]()
            writer.write(request("/v1/chat/completions", body))
        status, _ = await asyncio.wait_for(answer(reader), 60)
        return str(status)
    finally:
        writer.close()


async def client(server, kind, until):
    await asyncio.sleep(random.uniform(0, 5))
    while time.monotonic() < until:
        try:
            if kind in GOOD:
                await good(server, kind, until)
            else:
                server.seen[f"{kind}: {await bad(server, kind, until)}"] += 1
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, KeyError) as error:
            server.seen[f"{kind}: {type(error).__name__}"] += 1
            if kind in GOOD:
                server.wrong.append(f"{kind}: {error!r}")
        await asyncio.sleep(random.uniform(0.5, 1.5) * PAUSE)


async def watch(server, start, until):
    shown = 0
    while time.monotonic() < until:
        at = time.monotonic() - start
        server.memory.append((at, server.rss()))
        if at >= shown:
            print(f"{at:6.0f} s  {server.memory[-1][1]:6.0f} MB  {len(server.times)} good replies, {len(server.wrong)} wrong", flush=True)
            shown += 15
        await asyncio.sleep(1)


async def soak(server, seconds, clients):
    start = time.monotonic()
    until = start + seconds
    kinds = [kind for kind, share in KINDS.items() for _ in range(max(1, clients * share // 100))]
    await asyncio.wait_for(asyncio.gather(watch(server, start, until), *(client(server, kind, until) for kind in kinds)), seconds + 180)


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--trainer", required=True)
    arguments.add_argument("--seconds", type=int, default=1800)
    arguments.add_argument("--clients", type=int, default=500)
    arguments.add_argument("--model", default="data/calculator/model")
    arguments.add_argument("--log", help="a file for the log of the server")
    arguments.add_argument("--markdown", type=pathlib.Path, help=f"the page that gets the section `{HEADING}`")
    options = arguments.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    server = Server(options)
    # After the start of the server, which keeps the user's limit.
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    try:
        asyncio.run(soak(server, options.seconds, options.clients))
        rss = lambda begin, end: [mb for at, mb in server.memory if begin <= at / options.seconds <= end]
        # Requests in progress take memory, too: what stays is the lowest tenth of the values of a part.
        low = lambda values: sorted(values)[len(values) // 10]
        third, last = low(rss(1 / 6, 1 / 3)), low(rss(5 / 6, 1.1))
        server.process.terminate()
        begun = time.monotonic()
        code = server.process.wait(30)
        ended = time.monotonic() - begun
    finally:
        server.process.kill()
    for wrong in server.wrong[:10]:
        print(wrong, file=sys.stderr)
    times = sorted(server.times)
    rows = [
        ("good replies", f"{len(times)}; {len(server.wrong)} wrong"),
        ("time to them", f"median {statistics.median(times) * 1e3:.0f} ms, 99 % within {times[len(times) * 99 // 100] * 1e3:.0f} ms, longest {times[-1] * 1e3:.0f} ms"),
        ("memory", f"{server.memory[0][1]:.0f} MB at the start; highest {max(mb for _, mb in server.memory):.0f} MB"),
        ("memory between requests", f"{third:.0f} MB in the second sixth of the time, {last:.0f} MB in the last sixth"),
        ("SIGTERM", f"exit code {code} after {ended:.2f} s"),
    ]
    rows += [(kind, ", ".join(f"{count} × {what.split(': ', 1)[1]}" for what, count in sorted(server.seen.items()) if what.startswith(f"{kind}: "))) for kind in ("good", *KINDS) if kind not in GOOD]
    shares = lambda is_good: ", ".join(f"{share} % {kind}" for kind, share in KINDS.items() if (kind in GOOD) == is_good)
    arguments = f"--trainer target/release/trainer --seconds {options.seconds} --clients {options.clients}"
    command = f"    python3 scripts/check/soak_serve.py {arguments}"
    text = "\n\n".join([
        HEADING,
        textwrap.fill(f"`trainer serve` under {options.clients} clients for {options.seconds} seconds, on {os.cpu_count()} cores. Good clients: {shares(True)}. Bad clients: {shares(False)}. A client pauses {PAUSE:.0f} seconds between its requests.", 120),
        command,
        "\n".join(["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]),
    ]) + "\n"
    print(text)
    if options.markdown:
        page = options.markdown.read_text()
        before, _, rest = page.partition(HEADING)
        after = re.search(r"^## .*", rest, re.M | re.S)
        options.markdown.write_text(before.rstrip() + "\n\n" + text + ("\n" + after[0] if after else ""))
    sys.exit(0 if not server.wrong and last <= third * (1 + SHARE) + SLACK and code == 0 and ended < 1 else 1)


if __name__ == "__main__":
    main()
