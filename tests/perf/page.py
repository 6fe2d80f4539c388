#!/usr/bin/python3
"""What a page costs the scheduler and itself, by how many browsers follow it. Usage: page.py [HOSTS [GRAINS [SECONDS]]]

A pool with HOSTS hosts in its table (1000), two of which run, and a session of GRAINS grains (100,000). Prints the CPU time of
scheduler and page as a share of a core over SECONDS (40) without a page, with one without a browser, and with 1 and 50
browsers; the size of the first page, and the time until it was there."""
import contextlib
import os
import pwd
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "process"))
from browsers import Browser, end, fetch, start_page  # noqa: E402
from pool import Pool, process_cpu, program, start_time, wait_for  # noqa: E402

HOSTS, GRAINS, SECONDS = (int(sys.argv[i + 1]) if len(sys.argv) > i + 1 else n for i, n in enumerate((1000, 100_000, 40)))


def share(pids, browsers, what):
    starts = {name: (pid, start_time(pid)) for name, pid in pids.items()}
    before = {name: process_cpu(*of) for name, of in starts.items()}
    sent, begun = sum(b.bytes for b in browsers), time.monotonic()
    time.sleep(SECONDS)
    passed = time.monotonic() - begun
    shares = [f"{name} {100 * (process_cpu(*of) - before[name]) / passed:.2f} % of a core" for name, of in starts.items()]
    print(f"{what}: {', '.join(shares)}; {(sum(b.bytes for b in browsers) - sent) / passed / 1024:.0f} KiB/s", flush=True)


with Pool(servers=2, slots=2, patient=False, modest=True) as pool, contextlib.ExitStack() as ending:
    table = os.path.join(pool.dir, "scheduler/hosts")
    with open(table, "r+") as file:
        row = [line for line in file.read().splitlines() if "local1" in line][0]
        file.writelines(row.replace("local1", f"far{i}") + "\n" for i in range(HOSTS - 2))
    pool.dcs("reload")
    wait_for("the hosts", lambda: pool.json("status")["hosts"] == HOSTS)
    work = pool.start([program("dcs"), "map", "--", "sleep", "3600"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL,
                      stderr=subprocess.DEVNULL)
    ending.callback(end, work)
    work.stdin.write(b"0\n" * GRAINS)
    work.stdin.close()
    wait_for("the grains", lambda: (lambda s: s["ready"] + s["running"] == GRAINS)(pool.json("status")), timeout=600)
    pids = {"scheduler": pool.pid("scheduler", "scheduler")}
    share(pids, [], "without a page")
    page, url = start_page(pool.env)
    ending.callback(end, page)
    pids["page"] = page.pid
    share(pids, [], "no browser")
    for count in (1, 50):
        browsers = [Browser(url) for _ in range(count)]
        wait_for("the browsers", lambda: all(b.updates for b in browsers))
        share(pids, browsers, f"{count} browsers" if count > 1 else "a browser")
        print("first page", fetch(url) + ", page of the session", fetch(url + "session/" + pwd.getpwuid(os.getuid()).pw_name + "/1"))
        for browser in browsers:
            browser.close()
