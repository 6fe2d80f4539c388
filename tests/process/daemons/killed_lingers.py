#!/usr/bin/python3
"""A grain that is killed and ignores SIGTERM, and the same command at once again: as both demand all cores of the host, the
second starts when no process of the first is left, brings back its own output, and a grain that demands a slot runs meanwhile."""
import os
import signal

from pool import Pool, wait_for

# Writes its pid beside it, once, and what it sees of the one before it into its output.
DEAF = """
import os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
first, text = sys.argv[1], "first"
if os.path.exists(first):
    pid = int(open(first).read())
    text = "beside the first" if os.path.exists(f"/proc/{pid}") else "second"
open("out.txt", "w").write(text)
if text == "first":
    open(first + ".new", "w").write(str(os.getpid()))
    os.rename(first + ".new", first)
    while True:
        time.sleep(0.1)
        open("out.txt", "w").write(text)
"""


def main():
    with Pool(1, 2, 1) as pool:
        first, program = (os.path.join(pool.base, name) for name in ("first", "deaf.py"))
        with open(program, "w", encoding="ascii") as file:
            file.write(DEAF)
        command = [pool.bin + "/dcs", "run", "--cores", "2", "--output", "out.txt", "--", "python3", program, first]
        run = pool.start(command, cwd=pool.base)
        wait_for("the first", lambda: os.path.exists(first))
        run.send_signal(signal.SIGINT)
        assert run.wait(timeout=600) != 0
        second = pool.start(command, cwd=pool.base)
        pid = open(first, encoding="ascii").read()
        small = pool.dcs("run", "--", "sh", "-c", f"test -e /proc/{pid} && echo the first has not ended; true").stdout.decode()
        assert second.wait(timeout=600) == 0
        text = open(os.path.join(pool.base, "out.txt"), encoding="ascii").read()
        assert text == "second", text
        print("a killed grain keeps its cores until it has ended; a small one ran meanwhile:", small.strip() or "no")


main()
