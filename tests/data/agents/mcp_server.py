"""A server of the Model Context Protocol for tests, with tools that misbehave. The standard library is enough.

    mcp_server.py                 a program that talks on its input and output
    mcp_server.py --http          an address: /mcp answers with JSON, /stream with streams of events, /sse in the way of 2024-11-05;
                                  the first line of its output is the port
    mcp_server.py --start=MODE    misbehaves at the start: hang, exit, version, empty, endless
"""

import http.server
import json
import os
import queue
import sys
import threading
import time

START = next((word.partition("=")[2] for word in sys.argv if word.startswith("--start=")), "")
KEY = os.environ.get("SERVER_KEY")
sessions, calls, cancelled = set(), [], []


def tool(name, description="", read_only=False, **properties):
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    return {"name": name, "description": description, "inputSchema": schema, "annotations": {"readOnlyHint": read_only}}


TEXT = {"type": "string", "description": "A text", "default": "x"}
TOOLS = [
    tool("calculator", "Calculates.", expression=TEXT),
    tool("echo", "Says it again.", text=TEXT),
    tool("sleep", "Takes its time.", seconds={"type": "number"}),
    tool("hang", "Answers nobody any more."),
    tool("die", "Ends the process."),
    tool("die_once", "Ends the process where there is no such file yet.", read_only=True, path=TEXT),
    tool("fail", "Says that it failed."),
    tool("refuse", "Answers with an error."),
    tool("silent", "Does not answer."),
    tool("noise", "Prints what is no message, notifications, and answers to nobody."),
    tool("huge", "Answers much.", size={"type": "integer"}),
    tool("line", "Writes without an end."),
    tool("ask", "Asks the client."),
    tool("picture", "Shows a picture."),
    tool("odd", "Answers what is no answer."),
    tool("names", "The names of environment variables."),
    tool("count", "The calls so far, and the cancelled ones."),
    tool("forget", "Ends all sessions."),
]


def text(words, **more):
    return {"content": [{"type": "text", "text": words}], **more}


class Talk:
    """One way to talk: `send` sends a message, `asked` are the answers to questions of ours."""

    def __init__(self, send):
        self.send, self.asked = send, queue.Queue()

    def raw(self, words):
        pass

    def ask(self, method):
        self.send({"jsonrpc": "2.0", "id": "q-" + method, "method": method})
        answer = self.asked.get(timeout=5)
        return answer.get("result", answer.get("error", {}).get("code"))

    def call(self, name, given):
        calls.append(name)
        if name == "calculator":
            return text(str(eval(given["expression"], {"__builtins__": {}})))
        if name == "echo":
            return text(given["text"])
        if name == "sleep":
            time.sleep(given["seconds"])
            return text("slept")
        if name == "die":
            print("the last words", file=sys.stderr, flush=True)
            os._exit(3)
        if name == "die_once":
            if not os.path.exists(given["path"]):
                open(given["path"], "w").close()
                os._exit(3)
            return text("alive")
        if name == "fail":
            return text("it is broken", isError=True)
        if name == "refuse":
            raise LookupError("no, never")
        if name == "silent":
            time.sleep(1000)
        if name == "noise":
            self.raw("a banner, and {half\n\n[1, 2]\nnull\n")
            self.send({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "x"}})
            self.send({"jsonrpc": "2.0", "id": 99999, "result": text("nobody's")})
            self.send([{"jsonrpc": "2.0", "method": "notifications/progress"}])
            return text("heard")
        if name == "huge":
            return text("x" * given["size"])
        if name == "line":
            while True:
                self.raw("x" * (1 << 20))
        if name == "ask":
            return text("%s %s" % (self.ask("ping"), self.ask("sampling/createMessage")))
        if name == "picture":
            return {"content": [{"type": "image", "mimeType": "image/png", "data": "AAAA"}, {"type": "text", "text": "a dot"}]}
        if name == "odd":
            return 3
        if name == "names":
            return text(" ".join(sorted(os.environ)))
        if name == "count":
            return text("%d %d" % (len(calls), len(cancelled)))
        if name == "forget":
            sessions.clear()
            return text("forgotten")
        raise LookupError("unknown tool " + name)

    def answer(self, message):
        """The answer to a request; none for other messages."""
        method, params = message.get("method"), message.get("params", {})
        if method is None:
            self.asked.put(message)
            return None
        if method == "notifications/cancelled":
            cancelled.append(params["requestId"])
        if "id" not in message:
            return None
        try:
            if method == "initialize":
                version = "1999-01-01" if START == "version" else params["protocolVersion"]
                result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": {"name": "t", "version": "1"}}
            elif method == "ping":
                result = {}
            elif method == "tools/list":
                result = self.page(params.get("cursor"))
            elif method == "tools/call":
                result = self.call(params["name"], params["arguments"])
            else:
                raise LookupError("unknown method " + method)
            return {"jsonrpc": "2.0", "id": message["id"], "result": result}
        except Exception as error:
            return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": -32602, "message": str(error)}}

    def page(self, cursor):
        if START == "empty":
            return {"tools": []}
        at = int(cursor or 0)
        if START == "endless":
            return {"tools": TOOLS[:1], "nextCursor": str(at + 1)}
        page = {"tools": TOOLS[at : at + 4]}
        if at + 4 < len(TOOLS):
            page["nextCursor"] = str(at + 4)
        return page


def talk_by_lines():
    lock = threading.Lock()

    def raw(words):
        with lock:
            sys.stdout.write(words)
            sys.stdout.flush()

    talk = Talk(lambda message: raw(json.dumps(message) + "\n"))
    talk.raw = raw

    def work(message):
        answer = talk.answer(message)
        if answer is not None:
            talk.send(answer)

    for line in sys.stdin:
        message = json.loads(line)
        if START == "hang" or message.get("params", {}).get("name") == "hang":
            time.sleep(1000)
        if START == "exit":
            sys.exit("no key: set SECRET_KEY")
        threading.Thread(target=work, args=[message], daemon=True).start()


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    streams = {}

    def log_message(self, *words):
        pass

    def reply(self, status, body=b"", kind="application/json", **headers):
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)

    def event(self, data, name="message"):
        self.wfile.write(("event: %s\r\ndata: %s\r\n\r\n" % (name, data)).encode())
        self.wfile.flush()

    def do_GET(self):
        if self.path == "/sse/":
            return self.reply(307, location="http://%s/sse" % self.headers["host"])
        if self.path != "/sse":
            return self.reply(405)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        session = str(len(self.streams))
        events = self.streams[session] = queue.Queue()
        self.event("/messages?session=" + session, "endpoint")
        while True:
            message = events.get()
            if message is None:
                return
            self.event(json.dumps(message))

    def do_DELETE(self):
        sessions.discard(self.headers.get("mcp-session-id"))
        self.reply(200)

    def do_POST(self):
        body = self.rfile.read(int(self.headers["content-length"]))
        if KEY and self.headers.get("authorization") != "Bearer " + KEY:
            return self.reply(401, b"who are you?", "text/plain")
        message = json.loads(body)
        if self.path == "/moved":
            return self.reply(307, location="/mcp")
        if self.path.partition("?")[0] not in ("/mcp", "/stream", "/messages"):
            return self.reply(404)
        if self.path.startswith("/messages"):
            events = self.streams[self.path.partition("=")[2]]
            talk = self.talks.setdefault(self.path, Talk(events.put))
            if message.get("params", {}).get("name") == "forget":
                events.put(None)
            # The connection ends here, or the next message on it would wait for this call.
            self.close_connection = True
            self.reply(202, connection="close")
            answer = talk.answer(message)
            if answer is not None:
                events.put(answer)
            return
        session = self.headers.get("mcp-session-id")
        if message.get("method") == "initialize":
            session = "s%d" % time.time_ns()
            sessions.add(session)
        elif session not in sessions:
            return self.reply(404, b"no such session", "text/plain")
        elif self.headers.get("mcp-protocol-version") is None:
            return self.reply(400, b"no version", "text/plain")
        if self.path == "/mcp":
            answer = Talk(lambda message: None).answer(message)
            if answer is None:
                return self.reply(202)
            return self.reply(200, json.dumps(answer).encode(), mcp_session_id=session)
        if "method" not in message:
            self.talks[session].asked.put(message)
            return self.reply(202)
        if "id" not in message:
            return self.reply(202)
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("mcp-session-id", session)
        self.send_header("connection", "close")
        self.end_headers()
        talk = self.talks[session] = Talk(lambda message: self.event(json.dumps(message)))
        self.wfile.write(b": here\n\n")
        talk.send(talk.answer(message))
        self.close_connection = True

    talks = {}


if "--http" in sys.argv:
    http.server.ThreadingHTTPServer.request_queue_size = 64
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    print(server.server_address[1], flush=True)
    server.serve_forever()
else:
    talk_by_lines()
