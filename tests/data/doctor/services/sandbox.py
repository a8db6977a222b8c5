"""A service with the replies of Sandbox Fusion. It prints its port, and runs short programs in its own process."""
import contextlib
import http.server
import io
import json
import sys


def run(code, stdin):
    printed, sys.stdin = io.StringIO(), io.StringIO(stdin or "")
    try:
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "program", "exec"), {"__name__": "__main__"})
        return "Success", 0, printed.getvalue()
    except BaseException:
        return "Failed", 1, printed.getvalue()


class Service(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        status, code, stdout = run(asked["code"], asked["stdin"])
        result = {"status": "Finished", "return_code": code, "stdout": stdout}
        body = json.dumps({"status": status, "message": "", "compile_result": None, "run_result": result}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Service)
print(server.server_port, flush=True)
server.serve_forever()
