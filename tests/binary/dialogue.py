"""Leads a chat in a pseudo-terminal: dialogue.py TRAINER MODEL FILE. Exit status 1 and the screen, if anything is missing."""
import os
import pty
import select
import sys
import time

trainer, model, file = sys.argv[1:]
pid, terminal = pty.fork()
if pid == 0:
    os.execv(trainer, [trainer, "chat", model, "--system", "", "rollout.ignore_eos=true"])

screen = b""


def until(text, seconds=60):
    """Reads until a text is on the screen after what was seen so far."""
    global screen
    seen, end = len(screen), time.monotonic() + seconds
    while text not in screen[max(seen - len(text), 0):]:
        if time.monotonic() > end or not select.select([terminal], [], [], 1)[0] and time.monotonic() > end:
            sys.exit(f"no {text!r} on the screen:\n{screen.decode(errors='replace')}")
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                screen += os.read(terminal, 4096)
            except OSError:
                break


def say(line):
    os.write(terminal, line.encode() + b"\n")


until(b"/help lists")
until(b"> ")
say("/help")
until(b"/save FILE")
say("/rest")
until(b"Did you mean")
say("/system ")
until(b"removed")
say("/system Add.")
until(b"is set")
say("1+2=")
until(b"> ")
say(f"/save {file}")
until(b"2 messages are appended")
# An answer of all positions is stopped, and the chat continues.
say("2+3=")
time.sleep(0.2)
os.write(terminal, b"\x03")
until(b"> ")
say("/reset")
until(b"messages are forgotten")
os.write(terminal, b"\x04")
until(b"\n")
_, status = os.waitpid(pid, 0)
if os.waitstatus_to_exitcode(status) != 0:
    sys.exit(f"exit code {os.waitstatus_to_exitcode(status)}:\n{screen.decode(errors='replace')}")
