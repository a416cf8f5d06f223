#!/usr/bin/env python3
"""Breaks deeplook, or tries to: see `check`.

    hostile.py PROGRAM WORK [--full] [--seed N] [--only KIND] [--self-test]
"""

import argparse
import concurrent.futures
import shutil
import sys
import time
from pathlib import Path

import kinds
import live  # noqa: F401 (its kinds register themselves)
from breaker import Breaker


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("program")
    parser.add_argument("work", type=Path)
    parser.add_argument("--full", action="store_true", help="at least 20,000 inputs")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", choices=sorted(kinds.KINDS), action="append")
    parser.add_argument("--self-test", action="store_true", help="can it fail at all?")
    args = parser.parse_args()
    shutil.rmtree(args.work, ignore_errors=True)
    args.work.mkdir(parents=True)
    if args.self_test:
        return self_test(args.work)
    b = Breaker(args.program, args.work, args.seed)
    began = time.monotonic()

    def run(name):
        function, short, full = kinds.KINDS[name]
        started = time.monotonic()
        try:
            function(b, full if args.full else short)
        except Exception as error:  # A breaker that breaks has found nothing.
            b.fail(name, "the breaker itself", repr(error))
        print(f"hostile: {name}: {b.inputs.get(name, 0)} inputs in {time.monotonic() - started:.0f} s", flush=True)

    names = args.only or list(kinds.KINDS)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        list(pool.map(run, names))
    total = sum(b.inputs.values())
    told = f"{total} inputs, {b.commands} commands, {time.monotonic() - began:.0f} s, seed {args.seed}"
    if args.full and not args.only and total < 20_000:
        b.fail("all", "the full form", f"has only {total} inputs")
    if b.failures:
        print(f"hostile: failed: {len(b.failures)} things that must never happen, in {told} (see {args.work})")
        return 1
    print(f"hostile: ok, nothing that must never happen: {told}")
    return 0


# Programs that do what deeplook must never do, and what must be said of each.
BROKEN = {
    "echo \"thread 'main' panicked at src/x.rs\" >&2; exit 101": "panics",
    "kill -ABRT $$": "ended by SIGABRT",
    "sleep 100": "hangs",
    "exit 7": "exit code 7",
    "echo $PLANTED_SECRET": "what is in PLANTED_SECRET",
    "printf %s $OPENAI_API_KEY | base64 -w0": "what is in OPENAI_API_KEY",
    "cat ../private/secret.txt": "what a private file holds",
    "cp ../private/secret.txt copy": "holds what a private file holds",
    "echo x >../private/new": "writes into a folder that nobody named",
    "echo x >>../private/secret.txt": "writes into a folder that nobody named",
    "python3 -m pip": "starts",
    "exec /usr/bin/env python3 -c 'b = bytearray(1500 << 20)' || exit 1": "starts",
    "printf '\\033]0;PWN\\007'": "steers the terminal",
    "printf '\\342\\200\\256PWN'": "steers the terminal",
    "mkdir run; echo '{\"case\":\"a\",\"outcome\":\"failed\",\"score\":0}' >run/results.jsonl": "a number for what has failed",
}


def self_test(work):
    """Every way to fail is found, and a program that does nothing wrong is not blamed."""
    wrong = []
    scripts = dict(BROKEN)
    memory = f"{sys.executable} -c 'b = b\"x\" * (1200 << 20)'"
    scripts[memory] = "takes"
    sender = f"{sys.executable} -c 'import socket, sys; socket.create_connection((\"127.0.0.1\", PORT)).sendall(b\"x\")'; sleep 0.3"
    scripts[sender] = "sends to an address"
    scripts["echo all is well"] = None
    for number, (script, expected) in enumerate(scripts.items()):
        program = work / f"program{number}"
        b = Breaker(program, work / str(number), show=lambda _: None)
        program.write_text("#!/bin/bash\n" + script.replace("PORT", str(b.elsewhere.port)) + "\n")
        program.chmod(0o755)
        with b.place("self") as place:
            ran = b.run("self", place, ["x"], seconds=2 if "sleep 100" in script else 60, terminal="PWN" in script)
            kinds.check_lines(b, "self", place.cwd / "run", ran)
        said = [why for _, _, why in b.failures]
        good = any(expected in why for why in said) if expected else not said
        if not good:
            wrong.append(f"{script!r}: expected {expected!r}, found {said}")
    for line in wrong:
        print(f"hostile: self-test: {line}")
    print(f"hostile: self-test {'failed' if wrong else 'ok'}: {len(scripts)} programs")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
