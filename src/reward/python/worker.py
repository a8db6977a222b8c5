# A worker process: it sets up pipes and limits, loads the file of reward functions, and then answers one request after the other.
# Run by `python3 -u -c` with the text of results.py, styles.py, verl.py and columns.py before it. Python 3.8 and its standard library are
# enough for reward functions. A message is a line of JSON; if it begins with `#N `, N bytes of columns follow it.

import faulthandler
import fcntl
import importlib
import importlib.util
import json
import os
import resource
import select
import signal
import sys
import threading
import time
import traceback

PID = os.getpid()
MEGABYTE = 1 << 20
# High numbers: user code that closes "everything above 2" usually stops before them, and files that it opens do not get them.
FIRST_DESCRIPTOR = 200
LONGEST_ERROR = 8000
TO_JSON = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def claim_pipes():
    """Moves the pipes of the protocol away from the descriptors that user code, C code and subprocesses print to."""
    requests = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
    replies = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    log = fcntl.fcntl(2, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)
    os.dup2(log, 1)
    return requests, replies, log


def restore(log):
    """Reopens the output if a call closed it, so that `print` works in the next call."""
    for descriptor in (1, 2):
        try:
            fcntl.fcntl(descriptor, fcntl.F_GETFD)
        except OSError:
            os.dup2(log, descriptor)


def end_all():
    """Kills the worker and its children when the trainer is gone. The trainer starts every worker in a new process group."""
    os.killpg(0, signal.SIGKILL)


def watch(requests):
    """Ends the worker, even during a call, when the trainer's end of the pipe closes. Without requested events, poll reports
    nothing else."""
    poll = select.poll()
    poll.register(requests, 0)
    while not any(event & (select.POLLHUP | select.POLLERR) for _, event in poll.poll()):
        time.sleep(1.0)  # the user's code closed the descriptor
    end_all()


def send(replies, reply):
    reply, columns = reply if isinstance(reply, tuple) else (reply, ())
    # A lone surrogate, which Python's text can contain but UTF-8 cannot, becomes a question mark.
    line = TO_JSON.encode(reply).encode("utf-8", "replace") + b"\n"
    if columns:
        line = b"#%d %s" % (sum(map(len, columns)), line)
    try:
        for part in (line, *columns):
            part = memoryview(part)
            while part:
                part = part[os.write(replies, part):]
    except OSError as error:
        os.write(2, ("the answer cannot be sent, did the reward file close the descriptor? %s\n" % error).encode())
        os._exit(1)


def limit(memory_mb):
    """Limits the memory of each process of the worker. RLIMIT_DATA counts allocated memory (brk and private writable maps).
    RLIMIT_AS would count reserved addresses too, of which CUDA, the threads of BLAS and the allocator's arenas take many times
    the memory they use, so that importing torch would fail."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_mb is not None:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = memory_mb * MEGABYTE
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, wanted))


def allow_cpu(seconds):
    """Allows `seconds` of processor time from now on; after that SIGXCPU ends the process, whatever it is doing."""
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1]
    soft = int(time.process_time()) + 1 + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (soft if hard == resource.RLIM_INFINITY else min(soft, hard), hard))


def load(path):
    """Loads `pkg://module` or `file://path` as a module that can be imported by name, so that its classes can be pickled."""
    if path.startswith("pkg://"):
        sys.path.insert(0, os.getcwd())
        return importlib.import_module(path[len("pkg://"):].replace("/", "."))
    if path.startswith("file://"):
        path = path[len("file://"):]
    if not os.path.isfile(path):
        raise Unusable("there is no file %s" % path)
    path = os.path.abspath(path)
    sys.path[:0] = [os.path.dirname(path), os.getcwd()]
    name = os.path.splitext(os.path.basename(path))[0]
    if name in sys.modules:
        name = "reward_file_" + name
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module
    loader.exec_module(module)
    return module


def functions_of(module):
    """The names of the functions that a file defines."""
    return [name for name, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == module.__name__]


def find(module, names, path):
    """The functions of these names. If the only name is verl's default and is missing, OpenRLHF's `reward_func` is used."""
    own = functions_of(module)
    if names == ["compute_score"] and not hasattr(module, "compute_score") and hasattr(module, "reward_func"):
        names = ["reward_func"]
    for name in names:
        if not hasattr(module, name):
            raise Missing(name, own)
        if not callable(getattr(module, name)) or inspect.isclass(getattr(module, name)):
            raise Unusable("%s in %s is no function: it is %s" % (name, path, shown(getattr(module, name))))
    return [(name, getattr(module, name)) for name in names]


def own_frame(frame):
    """True if the frame belongs to the worker, or to a library between the worker and the user's code."""
    file = frame.f_code.co_filename
    return frame.f_globals is globals() or file.startswith("<frozen importlib") or "/asyncio/" in file or "/importlib/" in file


def trace(error):
    """The traceback, beginning with the first frame of user code."""
    frames = error.__traceback__
    if isinstance(error, MemoryError):
        traceback.clear_frames(frames)  # they hold the objects that filled the memory
    while frames is not None and own_frame(frames.tb_frame):
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames)).rstrip()
    if isinstance(error, SystemExit):
        text += "\nA reward file must not end the process that runs it."
    if len(text) > LONGEST_ERROR:
        text = text[: LONGEST_ERROR // 4] + "\n  …\n" + text[-LONGEST_ERROR * 3 // 4:]
    return text


def prepare(setup):
    """Applies the limits, loads the code, and returns its functions as callees."""
    if sys.version_info < (3, 8):
        raise Unusable("reward files need Python 3.8 or later, this is %s" % sys.version.split()[0])
    limit(setup["memory_limit_mb"])
    allow_cpu(setup["start_cpu_seconds"])
    if "code" in setup:
        module = {"__name__": setup["name"]}
        exec(compile(setup["code"], "<%s>" % setup["name"], "exec"), module)
        found = [(name, module[name]) for name in setup["functions"]]
        return [Callee(name, function, "plain") for name, function in found]
    path = setup["path"]
    sys.argv = [path]
    if "estimator" in setup:
        return [estimator(path, setup["estimator"], setup["config"])]
    if "post_processing" in setup:
        return [post_processing(path, setup["post_processing"], setup["config"])]
    found = find(load(path), setup["functions"], path)
    return [recognise(name, function, setup["kwargs"], setup["positional"]) for name, function in found]


def attempt(work):
    """Returns the result of `work`, or its error as a reply."""
    try:
        return work()
    except Unusable as error:
        return {"error": str(error)}
    except Missing as error:
        return {"missing": error.name, "functions": error.functions}
    except BaseException as error:
        try:
            return {"error": trace(error)}
        except BaseException:
            return {"error": "%s, and no traceback can be told" % type(error).__name__}


def greet(callees):
    return {"functions": [{"name": f.name, "style": f.style, "columns": f.columns(), "wants": f.wants()} for f in callees]}


def answer(callees, lines, line, cpu_seconds):
    columns = None
    if line.startswith(b"#"):
        size, line = line[1:].split(b" ", 1)
        columns = bytearray(int(size))
        if lines.readinto(columns) != len(columns):
            end_all()
    request = json.loads(line)
    callee = callees[request["function"]]
    allow_cpu(cpu_seconds)
    seed(request["seed"])
    if columns is not None:
        return CALLS[callee.style](callee, request["arguments"], columns)
    return CALLS[callee.style](callee, request["arguments"])


def main():
    requests, replies, log = claim_pipes()
    # By this signal the trainer asks a worker that takes too long for its position; the answer needs no lock of the interpreter.
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=False)
    threading.Thread(target=watch, args=(requests,), daemon=True).start()
    lines = open(requests, "rb", buffering=MEGABYTE)
    setup = json.loads(lines.readline())
    callees = []
    reply = attempt(lambda: callees.extend(prepare(setup)) or greet(callees))
    while True:
        if os.getpid() != PID:
            os._exit(0)  # a process forked by the user's code has returned from the call; only the worker itself may answer
        send(replies, reply)
        line = lines.readline()
        if not line:
            end_all()
        restore(log)
        reply = attempt(lambda: answer(callees, lines, line, setup["cpu_seconds"]))
        signal.setitimer(signal.ITIMER_REAL, 0)  # an alarm left over from one call must not end the next


main()
