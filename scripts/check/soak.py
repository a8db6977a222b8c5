#!/usr/bin/env python3
"""Keeps `serve-rm` and `report --watch` under a thousand connections each, good and bad, and checks replies and memory.

    python3 scripts/check/soak.py --trainer target/release/trainer [--seconds 600] [--connections 1000]
                                  [--markdown docs/benchmarks/reliability.md]

Good clients send repeated requests over open connections, and compare each reply. Bad ones send a byte per second, malformed or
huge requests, or foreign names, disconnect in the middle, or send nothing. Exits with 1 if a good request got a wrong reply, or
the memory grew after the first third. Needs only Python.
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
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
MODEL = "data/arithmetic/reward_model"
QUERY = json.dumps({"query": ["12+34=46<eos>", "12+34=47<eos>"]}).encode()
# The share of each kind of client, in percent.
KINDS = {"good": 40, "slow headers": 12, "slow body": 12, "malformed": 10, "huge": 8, "foreign": 6, "gone": 8, "silent": 4}
PAUSE = 4.0
# A server's memory may end this much above the highest of the first third of the time, in MB.
SLACK = 8.0


class Server:
    """A running server, the replies to its clients, and its memory over time."""

    def __init__(self, name, command, path, body):
        self.name, self.path, self.body = name, path, body
        self.process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        line = self.process.stdout.readline()
        self.host, port = re.search(r"http://([0-9.]+):(\d+)/", line).groups()
        self.port = int(port)
        self.seen = collections.Counter()
        self.times, self.memory, self.wrong, self.expected = [], [], [], None

    def request(self, headers=b"", body=None):
        body = self.body if body is None else body
        method = b"POST" if self.body else b"GET"
        head = b"%s %s HTTP/1.1\r\nHost: localhost\r\n%s" % (method, self.path, headers)
        return head + (b"Content-Length: %d\r\n\r\n%s" % (len(body), body) if self.body else b"\r\n")

    def rss(self):
        status = pathlib.Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024

    def cpu(self):
        fields = pathlib.Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


async def answer(reader):
    """Reads one answer: its status and its body."""
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    body = await reader.readexactly(int(length[1])) if length else b""
    return int(head.split()[1]), body


async def good(server, until):
    reader, writer = await asyncio.open_connection(server.host, server.port)
    while time.monotonic() < until:
        start = time.monotonic()
        writer.write(server.request())
        status, body = await asyncio.wait_for(answer(reader), 30)
        server.times.append(time.monotonic() - start)
        server.seen[f"good: {status}"] += 1
        server.expected = server.expected or body
        if status != 200 or body != server.expected:
            server.wrong.append(f"{status} {body[:100]}")
        await asyncio.sleep(random.uniform(0.5, 1.5) * PAUSE)
    writer.close()


async def drip(server, until, begun):
    """Sends a byte per second until the server has enough."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(begun)
    reply = asyncio.ensure_future(reader.read())
    while time.monotonic() < until and not reply.done():
        writer.write(b"a")
        await asyncio.wait([reply], timeout=1)
    if reply.done():
        return "closed, " + (reply.result().split(b"\r\n")[0].decode() or "without a word")
    reply.cancel()
    return None


async def once(server, data):
    """Sends bytes, and reads until the server closes."""
    reader, writer = await asyncio.open_connection(server.host, server.port)
    writer.write(data)
    reply = await asyncio.wait_for(reader.read(), 60)
    writer.close()
    return reply.split(b"\r\n")[0].decode() or "closed without a word"


async def bad(server, kind, until):
    post = b"POST %s HTTP/1.1\r\nHost: localhost\r\n" % server.path
    if kind == "slow headers":
        return await drip(server, until, post + b"X: ")
    if kind == "slow body":
        return await drip(server, until, post + b"Content-Length: 100000\r\n\r\n")
    if kind == "malformed":
        return await once(server, random.choice([b"\x16\x03\x01" + os.urandom(200), b"GET /\r\n\r\n", post + b"X : 1\r\n\r\n",
                                                 post + b"Content-Length: 1\r\nContent-Length: 2\r\n\r\n{}", b"PRI * HTTP/2.0\r\n\r\n"]))
    if kind == "huge":
        return await once(server, post + b"Connection: close\r\nContent-Length: 900000000\r\n\r\n" + b" " * (1 << 18))
    if kind == "foreign":
        return await once(server, b"GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n")
    reader, writer = await asyncio.open_connection(server.host, server.port)
    if kind == "gone":
        # A reset in the middle of a request, or of its reply.
        writer.write(random.choice([server.request(), server.request()[:40]]))
        await asyncio.sleep(random.uniform(0, 1))
        writer.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()
        return "left"
    reply = asyncio.ensure_future(reader.read())
    await asyncio.wait([reply], timeout=max(1, until - time.monotonic()))
    if not reply.done():
        reply.cancel()
        return None
    return "closed, " + (reply.result().split(b"\r\n")[0].decode() or "without a word")


async def client(server, kind, until):
    await asyncio.sleep(random.uniform(0, 5))
    while time.monotonic() < until:
        try:
            if kind == "good":
                await good(server, until)
            elif result := await bad(server, kind, until):
                server.seen[f"{kind}: {result}"] += 1
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError) as error:
            server.seen[f"{kind}: {type(error).__name__}"] += 1
            if kind == "good":
                server.wrong.append(repr(error))
        await asyncio.sleep(random.uniform(0.5, 1.5) * PAUSE)


async def watch(servers, start, until):
    while time.monotonic() < until:
        for server in servers:
            server.memory.append((time.monotonic() - start, server.rss()))
        await asyncio.sleep(1)


async def soak(servers, seconds, connections):
    start = time.monotonic()
    until = start + seconds
    kinds = [kind for kind, share in KINDS.items() for _ in range(connections * share // 100)]
    clients = [client(server, kind, until) for server in servers for kind in kinds]
    await asyncio.wait_for(asyncio.gather(watch(servers, start, until), *clients), seconds + 120)


def report(server, seconds):
    """The report lines of a server, and true if it passed."""
    third = [rss for at, rss in server.memory if at < seconds / 3]
    highest, last = max(third), max(rss for at, rss in server.memory if at >= seconds * 0.9 - 2)
    times = sorted(server.times)
    cpu = server.cpu()
    server.process.terminate()
    begun = time.monotonic()
    code = server.process.wait(30)
    ended = time.monotonic() - begun
    flat = last <= highest + SLACK
    rows = [
        ("good requests", f"{len(times)}; {len(server.wrong)} wrong replies"),
        ("time to their reply", f"median {statistics.median(times) * 1e3:.0f} ms, 99 % within {times[len(times) * 99 // 100] * 1e3:.0f} ms, longest {times[-1] * 1e3:.0f} ms"),
        ("memory", f"{server.memory[0][1]:.0f} MB at the start; at most {highest:.0f} MB in the first third, {last:.0f} MB in the last tenth"),
        ("processor", f"{cpu:.0f} s"),
        ("SIGTERM", f"exit code {code} after {ended:.2f} s"),
    ]
    rows += [(kind, ", ".join(f"{count} × {what.split(': ', 1)[1]}" for what, count in sorted(server.seen.items()) if what.startswith(f"{kind}: "))) for kind in KINDS if kind != "good"]
    lines = [f"| {server.name} | |", "|---|---|"] + [f"| {name} | {text} |" for name, text in rows]
    return lines, flat and not server.wrong and code == 0 and ended < 1


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--trainer", required=True)
    arguments.add_argument("--seconds", type=int, default=600)
    arguments.add_argument("--connections", type=int, default=1000)
    arguments.add_argument("--markdown", type=pathlib.Path, help="the page that has the section `## A thousand connections`")
    options = arguments.parse_args()
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    trainer = str(pathlib.Path(options.trainer).resolve())
    with tempfile.TemporaryDirectory() as run:
        rows = "".join(json.dumps({"step": step, "data": {"a": step}}) + "\n" for step in range(1, 200))
        (pathlib.Path(run) / "metrics.jsonl").write_text(rows)
        servers = [
            Server("`serve-rm`", [trainer, "serve-rm", "--model", MODEL, "--port", "0"], b"/get_reward", QUERY),
            Server("`report --watch`", [trainer, "report", "--watch", run], b"/data.json", b""),
        ]
        # After the start of the servers, which keep the user's limit.
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
        try:
            asyncio.run(soak(servers, options.seconds, options.connections))
            results = [report(server, options.seconds) for server in servers]
        finally:
            for server in servers:
                server.process.kill()
    for server in servers:
        for wrong in server.wrong[:5]:
            print(f"{server.name}: {wrong}", file=sys.stderr)
    shares = ", ".join(f"{share} % {kind}" for kind, share in KINDS.items())
    text = "\n\n".join([
        "## A thousand connections",
        f"`serve-rm` and `report --watch` at the same time, each under {options.connections} connections for {options.seconds} seconds, on {os.cpu_count()} cores: {shares}. "
        f"Good clients send a request every {PAUSE:.0f} seconds over a lasting connection; the others return {PAUSE:.0f} seconds after their end.",
        "```sh,needs-idle-machine\npython3 scripts/check/soak.py --trainer target/release/trainer --markdown docs/benchmarks/reliability.md\n```",
        *("\n".join(lines) for lines, _ in results),
    ]) + "\n"
    print(text)
    if options.markdown:
        page = options.markdown.read_text()
        before, _, rest = page.partition("## A thousand connections")
        after = re.search(r"^## .*", rest, re.M | re.S)
        options.markdown.write_text(before.rstrip() + "\n\n" + text + ("\n" + after[0] if after else ""))
    sys.exit(0 if all(held for _, held in results) else 1)


if __name__ == "__main__":
    main()
