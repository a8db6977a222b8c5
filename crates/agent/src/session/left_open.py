# The things that the user's files open while they are loaded, and that forked processes would share: connections and files,
# memory, child processes. Threads do not exist in a forked process, and a lock that one of them holds is never released there.

import stat
import warnings

# Files that are safe to share.
HARMLESS = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
# Threads that a library's fork handlers restart in the child, such as jemalloc's (used by pyarrow).
HANDLED_THREADS = ("jemalloc_bg_thd",)
# The longest time that threads, and the child of a trial fork, may take to end.
ENDING_SECONDS = 2.0


def lines_of(path):
    """Returns the lines of a file in /proc; an empty list if the system lacks the file."""
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()
    except OSError:
        return []


def names_in(folder):
    """Returns the names in a folder of /proc; an empty list if the system lacks the folder."""
    try:
        return os.listdir(folder)
    except OSError:
        return []


class Left:
    """The resources that were open before the files were loaded, for comparison with those open afterwards."""

    def __init__(self):
        self.descriptors, self.memory = self.open_descriptors(), self.shared_memory()

    def open_descriptors(self):
        """Returns the open descriptors, with their targets."""
        found = {}
        for number in names_in("/proc/self/fd"):
            try:
                found[int(number)] = os.readlink("/proc/self/fd/" + number)
            except OSError:
                pass  # the descriptor of the listing itself
        return found

    def shared_memory(self):
        """Returns the names of writable memory that stays shared after a fork."""
        fields = [line.split(None, 5) for line in lines_of("/proc/self/maps")]
        shared = [line[5] if len(line) > 5 else "" for line in fields if "w" in line[1] and line[1].endswith("s")]
        return [name for name in shared if name not in HARMLESS]

    def found(self):
        """Returns short descriptions of the things that forked processes would share now."""
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
        """Describes the target of a descriptor; returns `None` if it is safe to share."""
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
        # A file opened only for appending has no position to share.
        appends = flags and flags[0] & os.O_ACCMODE == os.O_WRONLY and flags[0] & os.O_APPEND
        return None if appends and stat.S_ISREG(mode) else "the open file %s" % target

    def children(self):
        """Returns short descriptions of the running child processes."""
        found = []
        for thread in names_in("/proc/self/task"):
            for line in lines_of("/proc/self/task/%s/children" % thread):
                for pid in line.split():
                    status = dict(line.split(":", 1) for line in lines_of("/proc/%s/status" % pid) if ":" in line)
                    if not status.get("State", "Z").strip().startswith("Z"):
                        found.append("the child process %s" % status.get("Name", "").strip())
        return sorted(set(found))

    def threads(self):
        """Returns the number of threads that a fork would leave behind. Some libraries, such as OpenBLAS, end their threads before a fork
        and restart them when needed, so this makes a trial fork."""
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
        """Returns the number of other threads."""
        names = [lines_of("/proc/self/task/%s/comm" % thread) for thread in names_in("/proc/self/task")]
        return sum(1 for name in names if name and name[0] not in HANDLED_THREADS) - 1

    def settled(self):
        """Returns true if this thread is the only one, after waiting briefly for others to end."""
        for _ in range(20):
            if self.others() < 1:
                return True
            time.sleep(0.005)
        return False


def socket_words(number):
    """Describes the peer of a socket."""
    with socket.socket(fileno=os.dup(number)) as one:
        try:
            peer = one.getpeername()
        except OSError:
            return "a socket"
    if isinstance(peer, tuple) and len(peer) > 1:
        return "a connection to %s:%s" % peer[:2]
    return "a connection to %s" % os.fsdecode(peer) if peer else "a pair of sockets"
