# Shared by all processes of users' Python code: pipes, limits and errors. Needs only Python 3.8 and its standard library. The caller's
# code follows in the same program; it sets USER_FILE, the term for a user's file in messages.

import faulthandler
import fcntl
import importlib
import importlib.util
import json
import os
import random
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


class Unusable(Exception):
    """An error reported without a traceback, because the function itself is wrong and not the place of the call."""


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
    """Reopens the output if a call has closed it, so that `print` works in the next call."""
    for descriptor in (1, 2):
        try:
            fcntl.fcntl(descriptor, fcntl.F_GETFD)
        except OSError:
            os.dup2(log, descriptor)


def end_all():
    """Kills the process and its children when the trainer is gone. The trainer starts every process in a new process group."""
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
        os.write(2, ("the reply cannot be sent, did the %s close the descriptor? %s\n" % (USER_FILE, error)).encode())
        os._exit(1)


def limit(memory_mb):
    """Limits the memory of each process of the worker. RLIMIT_DATA counts allocated memory (brk and private writable maps).
    RLIMIT_AS would also count reserved addresses, and CUDA, BLAS threads and allocator arenas reserve many times
    the memory they use, so importing torch would fail."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if memory_mb is not None:
        hard = resource.getrlimit(resource.RLIMIT_DATA)[1]
        wanted = memory_mb * MEGABYTE
        if hard != resource.RLIM_INFINITY:
            wanted = min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, wanted))


def allow_cpu(seconds):
    """Allows `seconds` of CPU time from now on; then SIGXCPU ends the process."""
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
        raise Unusable("the file %s does not exist" % path)
    path = os.path.abspath(path)
    sys.path[:0] = [os.path.dirname(path), os.getcwd()]
    name = os.path.splitext(os.path.basename(path))[0]
    if name in sys.modules:
        name = USER_FILE.replace(" ", "_") + "_" + name
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    sys.modules[name] = module
    tree = parsed_file(path)
    if tree is not None and is_program(tree):
        run_definitions(tree, path, module.__dict__)
    else:
        loader.exec_module(module)
    return module


def parsed_file(path):
    """Returns the syntax tree of a file; None if the loader must report what is wrong with the text."""
    try:
        with open(path, "rb") as file:
            return ast.parse(file.read(), path)
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def own_frame(frame):
    """Returns true if the frame belongs to the worker, or to a library between the worker and the user's code."""
    file = frame.f_code.co_filename
    return frame.f_globals is globals() or file.startswith("<frozen importlib") or "/asyncio/" in file or "/importlib/" in file


def trace(error):
    """Returns the traceback from the first frame of user code."""
    frames = error.__traceback__
    if isinstance(error, MemoryError):
        traceback.clear_frames(frames)  # they hold the objects that filled the memory
    while frames is not None and own_frame(frames.tb_frame):
        frames = frames.tb_next
    text = "".join(traceback.format_exception(type(error), error, frames)).rstrip()
    if isinstance(error, SystemExit):
        text += "\nA %s must not end the process that runs it." % USER_FILE
    if len(text) > LONGEST_ERROR:
        text = text[: LONGEST_ERROR // 4] + "\n  …\n" + text[-LONGEST_ERROR * 3 // 4:]
    return text


def seed(number):
    """Seeds the usual random generators. A library that is first imported during a call is seeded from the next call on."""
    random.seed(number)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(number & 0xFFFFFFFF)
    if "torch" in sys.modules:
        sys.modules["torch"].default_generator.manual_seed(number)  # torch's own manual_seed also queues work for GPUs
