# What the files of the user leave behind when they are loaded, and processes that are forked afterwards would share: open connections and
# files, memory, child processes. Threads are not in a forked process at all, and a lock that one of them holds is never released there.

import stat
import warnings

# Sharing these does no harm.
HARMLESS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Threads that are begun again in a forked process by handlers of their library: that of jemalloc, which pyarrow brings.
HANDLED_THREADS = ("jemalloc_bg_thd",)
# The longest time that threads, and the child that tries a fork, may take to end.
ENDING_SECONDS = 2.0


def lines_of(path):
    """The lines of a file of /proc; none where the system has no such file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def names_in(folder):
    """The names in a folder of /proc; none where the system has no such folder."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


class Left:
    """What was open before the files were loaded, to compare with what is open afterwards."""

    def __init__(self):
        self.descriptors, self.memory = self.open_descriptors(), self.shared_memory()

    def open_descriptors(self):
        """The open descriptors, and the name of what each is open for."""
        found = {}
        for number in names_in("/proc/self/fd"):
            try:
                found[int(number)] = os.readlink("/proc/self/fd/" + number)
            except OSError:
                pass  # the descriptor of the listing itself
        return found

    def shared_memory(self):
        """The names of memory that can be written and stays shared after a fork."""
        fields = [line.split(None, 5) for line in lines_of("/proc/self/maps")]
        shared = [line[5] if len(line) > 5 else "" for line in fields if "w" in line[1] and line[1].endswith("s")]
        return [name for name in shared if name not in HARMLESS]

    def found(self):
        """What forked processes would share now, each in a few words."""
        found = []
        for number, target in sorted(self.open_descriptors().items()):
            words = None if self.descriptors.get(number) == target else self.words(number, target)
            if words and words not in found:
                found.append(words)
        if len(self.shared_memory()) > len(self.memory):
            found.append("memory that processes share")
        found += self.children()
        threads = self.threads()
        if threads:
            found.append("%d thread%s" % (threads, "" if threads == 1 else "s"))
        return found

    @staticmethod
    def words(number, target):
        """What a descriptor is open for; `None` if sharing it does no harm."""
        if target.startswith("socket:"):
            return socket_words(number)
        if target.startswith("pipe:"):
            return "a pipe"
        if target == "anon_inode:[eventpoll]":
            return "an event loop"
        try:
            mode = os.fstat(number).st_mode
        except OSError:
            return None
        if target in HARMLESS or stat.S_ISDIR(mode):
            return None
        flags = [int(line.split()[1], 8) for line in lines_of("/proc/self/fdinfo/%d" % number) if line.startswith("flags:")]
        # A file that is only appended to has no position of its own.
        appends = flags and flags[0] & os.O_ACCMODE == os.O_WRONLY and flags[0] & os.O_APPEND
        return None if appends and stat.S_ISREG(mode) else "the open file %s" % target

    def children(self):
        """The child processes that run, each in a few words."""
        found = []
        for thread in names_in("/proc/self/task"):
            for line in lines_of("/proc/self/task/%s/children" % thread):
                for pid in line.split():
                    status = dict(line.split(":", 1) for line in lines_of("/proc/%s/status" % pid) if ":" in line)
                    if not status.get("State", "Z").strip().startswith("Z"):
                        found.append("the child process %s" % status.get("Name", "").strip())
        return sorted(set(found))

    def threads(self):
        """The number of threads that a fork leaves behind. Some libraries, such as OpenBLAS, end theirs before a fork and begin them again
        when they need them, so one is tried."""
        if not names_in("/proc/self/task"):
            return threading.active_count() - 1
        if self.settled():
            return 0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            pid = os.fork()
        if pid == 0:
            os._exit(0)
        end = time.monotonic() + ENDING_SECONDS
        while os.waitpid(pid, os.WNOHANG)[0] == 0:
            if time.monotonic() > end:
                os.kill(pid, signal.SIGKILL)
            time.sleep(0.001)
        return 0 if self.settled() else self.others()

    @staticmethod
    def others():
        """The number of threads next to this one."""
        names = [lines_of("/proc/self/task/%s/comm" % thread) for thread in names_in("/proc/self/task")]
        return sum(1 for name in names if name and name[0] not in HANDLED_THREADS) - 1

    def settled(self):
        """True if this thread is alone; those that are about to end get a moment."""
        for _ in range(20):
            if self.others() < 1:
                return True
            time.sleep(0.005)
        return False


def socket_words(number):
    """What a socket is connected to."""
    with socket.socket(fileno=os.dup(number)) as one:
        try:
            peer = one.getpeername()
        except OSError:
            return "a socket"
    if isinstance(peer, tuple) and len(peer) > 1:
        return "a connection to %s:%s" % peer[:2]
    return "a connection to %s" % os.fsdecode(peer) if peer else "a pair of sockets"
