"""Runs deeplook on hostile inputs, within limits, and looks for what must never happen."""

import base64
import contextlib
import os
import pty
import random
import re
import shutil
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path

from build import MARK

# What must stay where it is: variables of the environment, and files that nobody was given.
KEY = "sk-planted-Zq7wXv42Lm9Tr8Bn5Kd3"
SECRETS = {"PLANTED_SECRET": "plantedsecret-Hy6Tg5Rf4Ed3Ws2", "AWS_SECRET_ACCESS_KEY": "plantedaws-Qa1Zs2Xw3Ed4Cv5"}
CANARY = "canary-8c1f0e7d2b-nobody-was-given-this"

# Something that steers a terminal, right before our mark.
STEERED = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\u2066-\u2069]" + MARK)
SEQUENCE = re.compile("\x1b(?:\\][^\x07\x1b]{0,40}|\\[[0-9;?]*[A-Za-z]|.)" + MARK)

# Programs that deeplook must not start because of an input.
PROGRAMS = ["python3", "python", "pip", "curl", "wget", "git", "sh", "bash", "xdg-open", "open", "uv"]


MOST_SHOWN = 50


class Ran:
    """How a command ended."""

    def __init__(self, code, signal, out, err, seconds, megabytes):
        self.code, self.signal, self.out, self.err = code, signal, out, err
        self.seconds, self.megabytes = seconds, megabytes

    @property
    def said(self):
        return (self.out + self.err).decode("utf-8", "replace")


class Place:
    """A folder for some inputs: what was sent, where commands run and write, and what is private."""

    def __init__(self, folder):
        self.folder = folder
        self.sent, self.cwd, self.private = folder / "sent", folder / "cwd", folder / "private"
        for one in (self.sent, self.cwd, self.private, folder / "bin"):
            one.mkdir(parents=True)
        self.marker = folder / "started-a-program"
        for name in PROGRAMS:
            program = folder / "bin" / name
            program.write_text(f"#!/bin/sh\necho \"$0 $@\" >>'{self.marker}'\n")
            program.chmod(0o755)
        # What Python would take for its own.
        for name in ("pip.py", "sitecustomize.py", "onnxruntime.py", "zipfile.py"):
            (self.cwd / name).write_text(f"open({str(self.marker)!r}, 'a').write('{name}\\n')\n")
        for name in ("secret.txt", "results.jsonl", "manifest.json", "events.jsonl", "cases.jsonl", "run.json"):
            (self.private / name).write_text(f'{{"{CANARY}": "{CANARY}"}}\n')
        self.before = self.listing()

    def listing(self):
        return {path: path.lstat().st_size for path in sorted(self.private.rglob("*"))}


class Breaker:
    """Counts inputs, runs commands, and remembers what went wrong."""

    def __init__(self, program, work, seed=1, show=print):
        self.program, self.work = Path(program).resolve(), Path(work).resolve()
        self.seed, self.show = seed, show
        self.inputs, self.commands, self.failures = {}, 0, []
        self.lock, self.numbers = threading.Lock(), 0
        self.elsewhere = Listener()

    # --- for kinds ----------------------------------------------------------------------------------------------

    def rng(self, *names):
        return random.Random("/".join(map(str, (self.seed, *names))))

    @contextlib.contextmanager
    def place(self, kind):
        """A new folder; afterwards nothing private was read, changed or written, and no program was started."""
        with self.lock:
            self.numbers += 1
            folder = self.work / f"{kind}-{self.numbers}"
        place = Place(folder)
        failed = len(self.failures)
        yield place
        self.check_place(kind, place)
        if len(self.failures) == failed:
            shutil.rmtree(folder, ignore_errors=True)

    def count(self, kind, number=1):
        with self.lock:
            self.inputs[kind] = self.inputs.get(kind, 0) + number

    def fail(self, kind, what, why):
        with self.lock:
            self.failures.append((kind, what, why))
            number = len(self.failures)
        if number <= MOST_SHOWN:
            self.show(f"hostile: {kind}: {what}: {why}"[:600])

    def expect(self, kind, what, holds, why):
        if not holds:
            self.fail(kind, what, why)

    def run(self, kind, place, args, *, what="", codes=(0, 1, 2), terminal=False, seconds=60, cpu=60, megabytes=1024,
            env=None, during=None):
        """Runs a command; whatever must never happen is a failure. `during` is called with the process."""
        args = [str(arg) for arg in args]
        told = what + " " + " ".join(args[:9]) if what else " ".join(args[:9])
        ran = self.start(place, args, terminal, seconds, cpu, env or {}, during)
        with self.lock:
            self.commands += 1
        fail = lambda why: self.fail(kind, told, why)
        tail = ran.err.decode("utf-8", "replace")[-300:].strip() or ran.said[-300:].strip()
        if ran.signal == "hang":
            fail(f"hangs: not done after {ran.seconds:.0f} s")
        elif ran.signal:
            fail(f"ended by {ran.signal}: {tail}")
        elif ran.code == 101 or b"panicked at" in ran.err + ran.out:
            fail(f"panics: {tail}")
        elif ran.code not in codes:
            fail(f"exit code {ran.code}, expected one of {codes}: {tail}")
        if ran.megabytes > megabytes:
            fail(f"takes {ran.megabytes} MB, more than {megabytes}")
        for found in leaks(ran.out + ran.err):
            fail(f"tells {found}")
        if terminal:
            said = ran.said
            steered = STEERED.search(said) or SEQUENCE.search(said)
            if steered:
                fail(f"steers the terminal: {said[max(0, steered.start() - 40):steered.end() + 20]!r}")
        return ran

    # --- the machinery ------------------------------------------------------------------------------------------

    def environment(self, place, env):
        base = {"PATH": f"{place.folder / 'bin'}:{os.environ['PATH']}", "HOME": str(place.folder / "home"),
                "DEEPLOOK_CACHE": str(self.work / "cache"), "DEEPLOOK_OFFLINE": "1", "OPENAI_API_KEY": KEY,
                "TERM": "xterm", "LANG": "C.UTF-8", "MALLOC_ARENA_MAX": "2", "RUST_BACKTRACE": "0", **SECRETS}
        return {name: value for name, value in {**base, **env}.items() if value is not None}

    def start(self, place, args, terminal, seconds, cpu, env, during):
        # Far more than anything may take, so that this machine survives: what it may take is asked afterwards.
        limits = f"ulimit -v {12 << 20}; ulimit -t {cpu}; ulimit -c 0; ulimit -f {4 << 20}; exec \"$@\""
        command = ["/bin/sh", "-c", limits, "sh", str(self.program), *args]
        out_path, err_path = place.folder / ".out", place.folder / ".err"
        began = time.monotonic()
        with contextlib.ExitStack() as stack:
            reader = None
            if terminal:
                master, slave = pty.openpty()
                out = err = slave
                kept = bytearray()
                reader = threading.Thread(target=read_all, args=(master, kept))
                reader.start()
            else:
                out, err = (stack.enter_context(open(path, "wb")) for path in (out_path, err_path))
            process = subprocess.Popen(command, cwd=place.cwd, env=self.environment(place, env), stdout=out, stderr=err,
                                       stdin=subprocess.DEVNULL, start_new_session=True)
            if terminal:
                os.close(slave)
            if during:
                threading.Thread(target=during, args=(process,), daemon=True).start()
            status, usage, hang = wait(process, seconds)
            if terminal:
                reader.join()
                os.close(master)
        took = time.monotonic() - began
        killed = os.WTERMSIG(status) if os.WIFSIGNALED(status) else None
        name = "hang" if hang else killed and signal.Signals(killed).name
        code = os.WEXITSTATUS(status) if os.WIFEXITED(status) else None
        said = (bytes(kept), b"") if terminal else (out_path.read_bytes(), err_path.read_bytes())
        return Ran(code, name, *said, took, usage.ru_maxrss // 1024)

    def check_place(self, kind, place):
        if place.marker.exists():
            self.fail(kind, place.folder.name, f"starts {place.marker.read_text().strip()[:200]!r}")
        if place.listing() != place.before:
            self.fail(kind, place.folder.name, "writes into a folder that nobody named")
        for path in place.cwd.rglob("*"):
            if path.is_symlink() or not path.is_file():
                continue
            for found in leaks(path.read_bytes()):
                self.fail(kind, str(path.relative_to(place.folder)), f"holds {found}")
        arrived = self.elsewhere.take()
        if arrived:
            self.fail(kind, place.folder.name, f"sends to an address of the input's: {arrived[:200]!r}")


def leaks(data):
    """What is in `data` and must not be."""
    secrets = dict(SECRETS, CANARY=CANARY, OPENAI_API_KEY=KEY)
    for name, secret in secrets.items():
        for form in (secret.encode(), base64.b64encode(secret.encode()).rstrip(b"=")):
            if form in data:
                yield f"what is in {name}" if name != "CANARY" else "what a private file holds"
                break


def worked(pid):
    """How long a process has had a core, in ticks."""
    with contextlib.suppress(OSError, IndexError):
        fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        return int(fields[11]) + int(fields[12])
    return 0


def wait(process, seconds):
    """The status and what it took; whether it had to be ended. One that works on a busy machine does not hang: how long it
    may work is limited elsewhere."""
    deadline, pause, ticks = time.monotonic() + seconds, 0.002, 0
    last = time.monotonic() + 10 * seconds
    while True:
        if pause >= 0.05 and ticks != (now := worked(process.pid)):
            ticks, deadline = now, min(last, time.monotonic() + seconds)
        pid, status, usage = os.wait4(process.pid, os.WNOHANG)
        if pid:
            process.returncode = status
            return status, usage, False
        if time.monotonic() > deadline:
            # Only what we started: it leads a group of its own.
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = status
            return status, usage, True
        time.sleep(pause)
        pause = min(pause * 1.5, 0.05)


def read_all(descriptor, kept):
    # The other end of a terminal that is closed is an error.
    with contextlib.suppress(OSError):
        while data := os.read(descriptor, 1 << 16):
            kept += data


class Listener:
    """An address that only inputs name: whoever comes here was sent by one."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.got, self.lock = bytearray(), threading.Lock()
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self):
        while True:
            connection, _ = self.socket.accept()
            with connection, contextlib.suppress(OSError):
                connection.settimeout(2)
                data = connection.recv(1 << 16)
                with self.lock:
                    self.got += b"[a connection] " + data
                connection.sendall(b"HTTP/1.1 500 No\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")

    def take(self):
        with self.lock:
            got, self.got = bytes(self.got), bytearray()
        return got
