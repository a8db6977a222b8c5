# The process that loads the user's files, and the processes of conversations that are forked from it. Run by `python3 -u -c` with the texts
# of process.py, values.py and modules.py (crates/python/src), schemas.py, loops.py, run_loops.py, verifiers.py, stand_ins.py, parties.py, tools.py,
# program.py, offers.py and left_open.py before it.
# Python 3.8 and its standard library are enough.
#
# The host answers {"fork": …} and {"reap": pid} and does nothing else, and it outlives whatever a conversation does. It has no thread of its
# own, so that a fork finds no lock held. Where the files leave something that forked processes would share, the trainer starts a host that
# does not load them: then each conversation loads them itself. A conversation connects to the trainer's socket, hands over the pipe that it
# prints to, and answers requests.

import array
import concurrent.futures
import ctypes
import gc
import random
import socket

USER_FILE = "agent file"
MOST_BYTES = 64 << 20
CONNECT_SECONDS = 30
# Numbers of Linux's prctl.
PDEATHSIG, SUBREAPER = 1, 36
HOST = Offers()
CHILDREN = set()
# What each conversation is to load; `None` if the host has loaded it.
LATER = None


class State:
    """What a conversation keeps."""

    def __init__(self):
        self.access = {}
        self.data = self.environment = self.environment_name = self.agent = self.label = None
        self.interactions = set()
        self.asking = threading.Lock()
        self.loop = self.threads = self.socket = self.lines = self.log = None


STATE = State()


def prctl(option, value):
    """Asks the kernel of Linux for something; elsewhere nothing happens."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


# What conversations do.


def run_async(coroutine):
    """The result of a coroutine. All of a conversation share one loop, because a session of an HTTP client belongs to its loop."""
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
        os._exit(0)  # a process forked by the user's code; only the conversation itself may answer
    send(STATE.socket, message)


def send_part(part):
    """Sends a part of the reply before the rest of it."""
    say({"part": part})


def ask_trainer(wanted):
    """Replies with what the call needs of the trainer, which comes with the next request; `{"error": …}` is raised."""
    with STATE.asking:
        say({"value": wanted})
        line = STATE.lines.readline()
    if not line:
        end_all()
    request = json.loads(line)
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
    """The place in the user's code that raised an error, for a message of one line."""
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__) if not own_frame(frame)]
    if not frames:
        return ""
    lines = [line for frame, line in traceback.walk_tb(error.__traceback__) if not own_frame(frame)]
    return " (%s, line %d)" % (os.path.basename(frames[-1].f_code.co_filename), lines[-1])


def answer(request):
    """The reply to a request."""
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
            return {"raised": "%s, and no more can be told" % type(error).__name__, "type": type(error).__name__}


def reply_to(request):
    reply = answer(request)
    signal.setitimer(signal.ITIMER_REAL, 0)  # an alarm left over from one call must not end the next
    if os.getpid() != PID:
        os._exit(0)
    try:
        size = len(TO_JSON.encode(reply))
    except (ValueError, TypeError, RecursionError) as error:
        return {"raised": "the answer is no JSON: %s" % error, "type": type(error).__name__}
    return reply if size < MOST_BYTES else {"raised": "the answer has %d bytes, which is too long" % size, "type": "ValueError"}


def load_here():
    """Loads the files in the process of a conversation; the reply says whether that was possible."""
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
    """Is the process of one conversation, and never returns."""
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
        send(STATE.socket, reply_to(json.loads(line)))


# What the host does.


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
    """Ends a conversation with all that it started, and returns how it had ended."""
    if pid not in CHILDREN:
        return None
    kill(pid)
    _, status = os.waitpid(pid, 0)
    CHILDREN.discard(pid)
    end_strays()
    return status


def end_strays():
    """Ends what conversations started in other process groups: when its parent is gone, it becomes the host's child."""
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
    """Ends the host if the trainer goes while files are loaded; after that, the host itself sees it."""

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
    """Applies the limits, loads the files, and says what they offer."""
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
    gc.freeze()  # what conversations share is not touched by their collections
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
    # By this signal the trainer asks a process that takes too long for its position; the answer needs no lock of the interpreter.
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
        request = json.loads(line)
        if "fork" in request:
            reply = {"pid": fork(request, (requests, replies, log))}
        else:
            reply = {"status": reap(request["reap"])}


main()
