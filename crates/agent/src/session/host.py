# The process that loads the user's files, and the processes of conversations that are forked from it. It runs as `python3 -u -c`
# with the texts of process.py, values.py and modules.py (crates/python/src), schemas.py, loops.py, run_loops.py, verifiers.py,
# stand_ins.py, participants.py, tools.py, program.py, offers.py and left_open.py before it. It needs only Python 3.8 and the
# standard library.
#
# The host handles only {"fork": …} and {"reap": pid}, and no conversation can end it. It has no other threads, so that no lock is
# held during a fork. If forked processes would share something that the files opened, the trainer starts a host that does not
# load the files; each conversation then loads them itself. A conversation connects to the trainer's socket, passes the pipe with
# its output, and handles requests.

import array
import concurrent.futures
import ctypes
import gc
import random
import socket

USER_FILE = "agent file"
MOST_BYTES = 64 << 20
CONNECT_SECONDS = 30
# Constants of Linux's prctl.
PDEATHSIG, SUBREAPER = 1, 36
HOST = Offers()
CHILDREN = set()
# The setup that each conversation loads; `None` if the host has loaded it.
LATER = None


class State:
    """The state of a conversation."""

    def __init__(self):
        self.access = {}
        self.data = self.environment = self.environment_name = self.agent = self.label = None
        self.interactions = set()
        self.asking = threading.Lock()
        self.loop = self.threads = self.socket = self.lines = self.log = None


STATE = State()


def prctl(option, value):
    """Calls prctl on Linux; does nothing elsewhere."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


# The code of conversations.


def run_async(coroutine):
    """Returns the result of a coroutine. A conversation has a single event loop, because a session of an HTTP client belongs to its loop."""
    import asyncio

    if STATE.loop is None:
        STATE.loop = asyncio.new_event_loop()
        asyncio.set_event_loop(STATE.loop)
    return STATE.loop.run_until_complete(coroutine)


async def awaited(result):
    return await result if inspect.isawaitable(result) else result


def finished(result):
    return run_async(awaited(result)) if inspect.isawaitable(result) else result


def in_thread(function, *arguments):
    if STATE.threads is None:
        STATE.threads = concurrent.futures.ThreadPoolExecutor(max_workers=64)
    return STATE.loop.run_in_executor(STATE.threads, function, *arguments)


def say(message):
    if os.getpid() != PID:
        os._exit(0)  # a process forked by the user's code; only the conversation itself may reply
    send(STATE.socket, message)


def send_part(part):
    """Sends a part of the reply ahead of the rest."""
    say({"part": part})


def ask_trainer(wanted):
    """Replies with the call's request to the trainer, and returns the result from the next request; raises `{"error": …}`."""
    with STATE.asking:
        say({"value": wanted})
        line = STATE.lines.readline()
    if not line:
        end_all()
    request = received(line)
    allow_cpu(request["cpu_seconds"])
    answer = request["arguments"]
    if isinstance(answer, dict) and list(answer) == ["error"]:
        raise ValueError(answer["error"])
    return answer


OPERATIONS = {
    "call": call_tools,
    "reset": reset_environment,
    "reward": environment_reward,
    "respond": respond,
    "agent_reset": reset_agent,
    "agent_step": step_agent,
    "loop": run_loop,
    "access": take_access,
    "program": run_program,
}


def place_of(error):
    """Returns the place in the user's code that raised an error, for a one-line message."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if not own_frame(frame)]
    if not frames:
        return ""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if not own_frame(frame)]
    return " (%s, line %d)" % (os.path.basename(frames[-1].f_code.co_filename), lines[-1])


def answer(request):
    """Returns the reply to a request."""
    allow_cpu(request["cpu_seconds"])
    seed(request["seed"])
    try:
        return {"value": OPERATIONS[request["op"]](**request["arguments"])}
    except BaseException as error:
        if isinstance(error, Unusable):
            return {"raised": str(error), "type": "Unusable"}
        try:
            sys.stderr.write(trace(error) + "\n")
            text = "%s: %s" % (type(error).__name__, " ".join(str(error).split()))
            return {"raised": text[:LONGEST_ERROR] + place_of(error), "type": type(error).__name__}
        except BaseException:
            return {"raised": "%s, without a readable text" % type(error).__name__, "type": type(error).__name__}


def reply_to(request):
    reply = answer(request)
    signal.setitimer(signal.ITIMER_REAL, 0)  # an alarm left over from one call must not end the next
    if os.getpid() != PID:
        os._exit(0)
    try:
        size = len(TO_JSON.encode(reply))
    except (ValueError, TypeError, RecursionError) as error:
        return {"raised": "the result cannot be written as JSON: %s" % error, "type": type(error).__name__}
    return reply if size < MOST_BYTES else {"raised": "the result has %d bytes, which is too long" % size, "type": "ValueError"}


def load_here():
    """Loads the files in the process of a conversation, and returns a reply about success."""
    try:
        prepare(LATER)
        reply = {"value": {}}
    except BaseException as error:
        sys.stderr.write(trace(error) + "\n")
        reply = {"raised": ("%s: %s" % (type(error).__name__, " ".join(str(error).split())))[:LONGEST_ERROR]}
    if os.getpid() != PID:
        os._exit(0)  # a process forked by the user's code while it was loaded
    return reply


def converse(request, close):
    """Runs the process of one conversation, and never returns."""
    global PID
    PID = os.getpid()
    os.setsid()
    prctl(PDEATHSIG, signal.SIGKILL)
    prctl(SUBREAPER, 1)
    for descriptor in close:
        os.close(descriptor)
    for number in (signal.SIGCHLD, signal.SIGALRM, signal.SIGTERM, signal.SIGPIPE):
        signal.signal(number, signal.SIG_DFL if number != signal.SIGPIPE else signal.SIG_IGN)
    signal.setitimer(signal.ITIMER_REAL, 0)
    CHILDREN.clear()
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(CONNECT_SECONDS)
    connection.connect(request["path"])
    connection.settimeout(None)
    printed, own = os.pipe()
    rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [printed]))]
    connection.sendmsg([request["fork"].encode() + b"\n"], rights)
    STATE.log = fcntl.fcntl(own, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
    os.dup2(own, 1)
    os.dup2(own, 2)
    os.close(own)
    os.close(printed)
    STATE.socket = fcntl.fcntl(connection.detach(), fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
    STATE.lines = open(os.dup(STATE.socket), "rb", buffering=MEGABYTE)
    threading.Thread(target=watch, args=(STATE.socket,), daemon=True).start()
    if LATER is not None:
        send(STATE.socket, load_here())
    while True:
        line = STATE.lines.readline()
        if not line:
            end_all()
        restore(STATE.log)
        send(STATE.socket, reply_to(received(line)))


# The code of the host.


def fork(request, close):
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        try:
            converse(request, close)
        except BaseException as error:
            os.write(2, ("%s\n" % trace(error)).encode("utf-8", "replace"))
        finally:
            os._exit(1)
    CHILDREN.add(pid)
    return pid


def kill(pid):
    for end in (os.killpg, os.kill):
        try:
            end(pid, signal.SIGKILL)
        except OSError:
            pass


def reap(pid):
    """Ends a conversation with everything that it started, and returns its exit status."""
    if pid not in CHILDREN:
        return None
    kill(pid)
    _, status = os.waitpid(pid, 0)
    CHILDREN.discard(pid)
    end_strays()
    return status


def end_strays():
    """Ends processes that conversations started in other process groups; once their parents are gone, they are children of the host."""
    for _ in range(100):
        found = []
        for thread in os.listdir("/proc/self/task") if sys.platform == "linux" else ():
            try:
                with open("/proc/self/task/%s/children" % thread) as children:
                    found += [int(pid) for pid in children.read().split()]
                found = [pid for pid in found if pid not in CHILDREN and os.getpgid(pid) != os.getpgid(0)]
            except OSError:
                return
        if not found:
            return
        for pid in found:
            kill(pid)
            try:
                os.waitpid(pid, 0)
            except OSError:
                pass


def end_host():
    """Ends everything, when the trainer is gone."""
    for pid in list(CHILDREN):
        reap(pid)
    end_all()


class Watch:
    """Ends the host if the trainer exits while files are loading; later, the host itself notices."""

    def __init__(self, requests):
        self.requests = requests
        self.stop, self.stopped = os.pipe()[::-1]

    def __enter__(self):
        self.thread = threading.Thread(target=self.look, daemon=True)
        self.thread.start()

    def look(self):
        poll = select.poll()
        poll.register(self.requests, 0)
        poll.register(self.stopped, 0)
        gone = [descriptor for descriptor, event in poll.poll() if event & (select.POLLHUP | select.POLLERR)]
        if self.requests in gone:
            end_all()

    def __exit__(self, *_):
        os.close(self.stop)
        self.thread.join()
        os.close(self.stopped)


def prepare(setup):
    """Applies the limits, loads the files, and returns what they offer."""
    global NARROW
    if sys.version_info < (3, 8):
        raise Unusable("agent files need Python 3.8 or later, this is %s" % sys.version.split()[0])
    limit(setup["memory_limit_mb"])
    allow_cpu(setup["start_cpu_seconds"])
    seed(0)
    NARROW = setup["narrow_schemas"]
    sys.argv = ["agent"]
    sys.meta_path.insert(0, StandIns(stood_in()))
    HOST.load(setup)
    gc.collect()
    gc.freeze()  # garbage collection in conversations leaves shared objects alone
    return HOST.greeting()


def greet(requests, setup):
    global LATER
    if setup["later"]:
        LATER = setup
        return {"offers": None}
    try:
        left, begun = Left(), time.monotonic()
        with Watch(requests):
            offers = prepare(setup)
        seconds = time.monotonic() - begun
        return {"offers": offers, "seconds": seconds, "shared": left.found()}
    except Unusable as error:
        return {"error": str(error)}
    except BaseException as error:
        return {"error": trace(error)}


def main():
    requests, replies, log = claim_pipes()
    # The trainer sends this signal to get the current position of a hanging process; the handler needs no lock of the
    # interpreter.
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=False)
    prctl(SUBREAPER, 1)
    lines = open(requests, "rb", buffering=MEGABYTE)
    reply = greet(requests, json.loads(lines.readline()))
    while True:
        if os.getpid() != PID:
            os._exit(0)  # a process forked by the user's code while it was loaded
        send(replies, reply)
        line = lines.readline()
        if not line:
            end_host()
        request = received(line)
        if "fork" in request:
            reply = {"pid": fork(request, (requests, replies, log))}
        else:
            reply = {"status": reap(request["reap"])}


main()
