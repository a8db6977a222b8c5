"""A W&B-shaped server on loopback that records what the official client uploads. Standard library only.

It answers the few GraphQL operations that uploading a run needs, the file stream, and the upload of files. Lines of the file
stream are stored by number: a chunk at offset N replaces the lines from N on.
"""

import gzip
import json
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

HISTORY, SUMMARY, EVENTS = "wandb-history.jsonl", "wandb-summary.json", "wandb-events.jsonl"


class Run:
    """The uploads of one run."""

    def __init__(self, name):
        self.name, self.about, self.config = name, {}, {}
        self.lines = {}  # of file name: {line number: text}
        self.received = 0  # lines of history, those that came again included
        self.files = {}  # path: bytes
        self.complete, self.exit_code, self.preempting = False, None, False

    def rows(self):
        """The rows of history by step, parsed by Python's json, which knows NaN and Infinity.

        The client continues after the server's reported lines, also when it uploads a run again, and relies on the server to keep
        one row per step.
        """
        lines = self.lines.get(HISTORY, {})
        # JSON has no sign of an integer 0: the client writes -0.0 as -0.
        rows = [json.loads(lines[number], parse_int=float) for number in sorted(lines)]
        latest = {row["_step"]: row for row in rows}
        return [latest[step] for step in sorted(latest)]

    def summary(self):
        lines = self.lines.get(SUMMARY, {})
        return json.loads(lines[max(lines)]) if lines else {}

    def events(self):
        lines = self.lines.get(EVENTS, {})
        return [json.loads(lines[number]) for number in sorted(lines)]


class _Http(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Clients that are killed close their connections in the middle."""


class Server:
    """Serves on a free loopback port until `stop`."""

    def __init__(self):
        self.runs, self.unknown = {}, []
        self.lock = threading.Lock()
        self.http = _Http(("127.0.0.1", 0), _handler(self))
        self.url = "http://127.0.0.1:%d" % self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def stop(self):
        self.http.shutdown()
        self.http.server_close()

    def run(self, name):
        return self.runs.setdefault(name, Run(name))

    def graphql(self, request):
        query, variables = request.get("query", ""), request.get("variables") or {}
        named = re.search(r"\b(?:query|mutation)\s+(\w+)", query)
        name = request.get("operationName") or (named.group(1) if named else "")
        answer = getattr(self, "answer_" + name, None)
        if answer is None:
            if "viewer" in query:
                return self.answer_Viewer(variables)
            self.unknown.append(name or query[:200])
            return {}
        return answer(variables)

    def answer_Viewer(self, _):
        viewer = {"id": "user", "entity": "ent", "username": "user", "email": "user@localhost", "flags": "{}", "admin": False}
        return {"viewer": {**viewer, "teams": {"edges": []}}}

    def answer_ServerFeaturesQuery(self, _):
        return {"serverInfo": {"features": []}}

    def answer_OrgFeatureFlags(self, _):
        return {"organization": {"featureFlags": []}}

    def answer_UpsertBucket(self, variables):
        run = self.run(variables["name"])
        run.about.update({key: value for key, value in variables.items() if value is not None and key != "config"})
        if variables.get("config"):
            run.config = json.loads(variables["config"])
        project = {"name": variables.get("project") or "uncategorized", "entity": {"name": variables.get("entity") or "ent"}}
        bucket = {"id": "id-" + run.name, "name": run.name, "displayName": variables.get("displayName") or run.name}
        bucket.update({"description": None, "config": None, "sweepName": None, "historyLineCount": len(run.lines.get(HISTORY, {}))})
        return {"upsertBucket": {"bucket": {**bucket, "project": project}, "inserted": not run.lines}}

    def answer_RunResumeStatus(self, variables):
        run = self.runs.get(variables["name"])
        if run is None:
            return {"model": {"id": "model", "name": variables.get("project"), "entity": {"id": "e", "name": "ent"}, "bucket": None}}
        counts = {key: len(run.lines.get(name, {})) for key, name in
                  [("historyLineCount", HISTORY), ("eventsLineCount", EVENTS), ("logLineCount", "output.log")]}
        tails = {"historyTail": json.dumps([json.dumps(row) for row in run.rows()[-1:]]), "eventsTail": "[]"}
        bucket = {"id": "id-" + run.name, "name": run.name, "summaryMetrics": json.dumps(run.summary()), "displayName": run.name}
        bucket.update({**counts, **tails, "config": json.dumps(run.config), "tags": [], "wandbConfig": json.dumps({"t": 1})})
        return {"model": {"id": "model", "name": variables.get("project"), "entity": {"id": "e", "name": "ent"}, "bucket": bucket}}

    def answer_CreateRunFiles(self, variables):
        base = "%s/upload/%s/" % (self.url, variables["run"])
        files = [{"name": name, "uploadUrl": base + name} for name in variables["files"]]
        return {"createRunFiles": {"runID": "id-" + variables["run"], "uploadHeaders": [], "files": files}}

    def answer_MarkRunFilesUploaded(self, _):
        return {"markRunFilesUploaded": {"success": True}}

    def file_stream(self, name, body):
        run = self.run(name)
        for file, chunk in (body.get("files") or {}).items():
            lines = run.lines.setdefault(file, {})
            if file == HISTORY:
                run.received += len(chunk["content"])
            for number, line in enumerate(chunk["content"], chunk["offset"]):
                lines[number] = line
        run.preempting = run.preempting or bool(body.get("preempting"))
        if "complete" in body:
            run.complete, run.exit_code = body["complete"], body.get("exitcode")
        elif body.get("files"):
            run.complete, run.exit_code = False, None
        return {"exitcode": None, "limits": {}}


def _handler(server):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_):
            pass

        def body(self):
            if self.headers.get("Transfer-Encoding") == "chunked":
                pieces = iter(lambda: self.rfile.read(int(self.rfile.readline(), 16) + 2)[:-2], b"")
                data = b"".join(pieces)
            else:
                data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            return gzip.decompress(data) if self.headers.get("Content-Encoding") == "gzip" else data

        def reply(self, value, status=200):
            data = json.dumps(value).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_POST(self):
            path, body = urlsplit(self.path).path, self.body()
            stream = re.fullmatch(r"/files/[^/]+/[^/]+/([^/]+)/file_stream", path)
            with server.lock:
                if path == "/graphql":
                    self.reply({"data": server.graphql(json.loads(body))})
                elif stream:
                    self.reply(server.file_stream(stream.group(1), json.loads(body)))
                elif path.startswith("/sdk/otel/"):
                    self.reply({})
                else:
                    server.unknown.append("POST " + path)
                    self.reply({}, 404)

        def do_PUT(self):
            path, body = unquote(urlsplit(self.path).path), self.body()
            _, kind, run, name = path.split("/", 3)
            with server.lock:
                if kind == "upload":
                    server.run(run).files[name] = body
                else:
                    server.unknown.append("PUT " + path)
            self.reply({})

        def do_GET(self):
            server.unknown.append("GET " + self.path)
            self.reply({}, 404)

    return Handler
