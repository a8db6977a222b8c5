# A worker process: it sets up pipes and limits, loads the file of reward functions, and then handles one request after the other.
# It is run by `python3 -u -c` with the text of process.py, values.py, modules.py (crates/python/src), results.py, styles.py,
# verl.py, columns.py and policy_loss.py before it. Reward functions need only Python 3.8 and its standard library. A message is a
# line of JSON; if it begins with `#N `, N bytes of columns follow it.

USER_FILE = "reward file"


def functions_of(module):
    """Returns the names of the functions that a file defines."""
    return [name for name, value in vars(module).items() if inspect.isfunction(value) and value.__module__ == module.__name__]


def find(module, names, path):
    """Returns the functions of these names. If the only name is verl's default and is missing, OpenRLHF's `reward_func` is used."""
    own = functions_of(module)
    if names == ["compute_score"] and not hasattr(module, "compute_score") and hasattr(module, "reward_func"):
        names = ["reward_func"]
    for name in names:
        if not hasattr(module, name):
            raise Missing(name, own)
        if not callable(getattr(module, name)) or inspect.isclass(getattr(module, name)):
            raise Unusable("%s in %s is not a function but %s" % (name, path, shown(getattr(module, name))))
    return [(name, getattr(module, name)) for name in names]


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
    stand_in_for_verl()
    if "estimator" in setup:
        return [estimator(path, setup["estimator"], setup["config"])]
    if "policy_loss" in setup:
        return [policy_loss(path, setup["policy_loss"], setup["config"])]
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
            return {"error": "%s, and the traceback cannot be printed" % type(error).__name__}


def greet(callees):
    return {"functions": [{"name": f.name, "style": f.style, "columns": f.columns(), "wants": f.wants(), "reads": f.reads()} for f in callees]}


def answer(callees, lines, line, cpu_seconds):
    columns = None
    if line.startswith(b"#"):
        size, line = line[1:].split(b" ", 1)
        columns = bytearray(int(size))
        if lines.readinto(columns) != len(columns):
            end_all()
    request = received(line)
    callee = callees[request["function"]]
    allow_cpu(cpu_seconds)
    seed(request["seed"])
    if columns is not None:
        return CALLS[callee.style](callee, request["arguments"], columns)
    return CALLS[callee.style](callee, request["arguments"])


def main():
    requests, replies, log = claim_pipes()
    # The trainer sends this signal to a worker that takes too long, to get its position; the handler needs no lock of the
    # interpreter.
    faulthandler.register(signal.SIGUSR1, file=2, all_threads=False)
    threading.Thread(target=watch, args=(requests,), daemon=True).start()
    lines = open(requests, "rb", buffering=MEGABYTE)
    global TRAINER
    TRAINER = Trainer(requests, replies)  # between a request and its reply, the pipe of requests has only answers
    setup = received(lines.readline())
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
