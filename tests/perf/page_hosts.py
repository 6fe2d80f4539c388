#!/usr/bin/python3
"""Whether the scheduler of many busy hosts notices that fifty browsers look.

    page_hosts.py [HOSTS [GRAINS [PAIRS [SECONDS]]]]

The real scheduler with HOSTS (1000) connections of played grain servers (perf_call_in: each calls in every 10 s with a report,
every tenth ends its grain and gets the next), and GRAINS (100,000) more that wait. By turns of SECONDS (15) there is no page, and a
page with fifty browsers. Prints of each turn the scheduler's CPU time, and the time from a host's report to its answer; of the
page its CPU time, that of a look, the bytes of the first page and of an update; in Chromium, if it is installed, when the page was
painted and what an update costs there; then the figures of perf_call_in."""
import os
import re
import signal
import statistics
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "process"))
from browsers import Browser, end, fetch, figure, start_page  # noqa: E402
from chromium import browser, is_installed  # noqa: E402
from pool import BIN, program, wait_for  # noqa: E402

HOSTS, GRAINS, PAIRS, SECONDS = (int(sys.argv[i + 1]) if len(sys.argv) > i + 1 else n for i, n in enumerate((1000, 100_000, 6, 15)))
BROWSERS = 50


def processes_in(directory):
    """Those of the scheduler, the daemon itself first."""
    found = []
    for pid in map(int, filter(str.isdigit, os.listdir("/proc"))):
        try:
            words = open(f"/proc/{pid}/cmdline").read().split("\0")
        except OSError:
            continue
        if words[0].endswith("/dcs_scheduler") and directory + "/scheduler" in words:
            found.append(pid)
    return sorted(found)


def cpu_of(pid):
    """Seconds, by the nanoseconds of the kernel."""
    tasks = f"/proc/{pid}/task"
    return sum(int(open(f"{tasks}/{task}/schedstat").read().split()[0]) for task in os.listdir(tasks)) / 1e9


def share(*programs):
    """Percent of a core that each of them uses over SECONDS."""
    before, begun = [sum(map(cpu_of, pids)) for pids in programs], time.monotonic()
    time.sleep(SECONDS)
    passed = time.monotonic() - begun
    return [100 * (sum(map(cpu_of, pids)) - was) / passed for pids, was in zip(programs, before)]


def answered(load):
    """Milliseconds from a report to its answer since the last time, and the same as text."""
    load.send_signal(signal.SIGUSR1)
    line = load.stdout.readline().strip()
    return float(line.split()[1]), line


def with_browsers(scheduler, env):
    """The same while fifty browsers follow a page: of scheduler and page, and the bytes of an update."""
    page, url = start_page(env)
    try:
        browsers = [Browser(url) for _ in range(BROWSERS)]
        wait_for("the browsers", lambda: all(b.updates for b in browsers))
        updates, sent = sum(b.updates for b in browsers), sum(b.bytes for b in browsers)
        shares = share(scheduler, [page.pid])
        size = (sum(b.bytes for b in browsers) - sent) / max(1, sum(b.updates for b in browsers) - updates)
        print(f"  first page {fetch(url)}; the last look took {1000 * figure(url, 'dcs_page_look_seconds'):.1f} ms; "
              f"an update has {size / 1024:.1f} KiB for each browser", flush=True)
        for browser in browsers:
            browser.close()
        return shares
    finally:
        end(page)


def in_chromium(env):
    """What a reader sees: the first paint of three loads, and the work of an update."""
    page, url = start_page(env)
    others = [Browser(url) for _ in range(BROWSERS - 1)]
    driver = browser()
    try:
        painted = []
        for _ in range(3):
            driver.get(url)
            wait_for("the page to be live", lambda: driver.find_element("id", "live").text == "live")
            painted.append(driver.execute_script(
                "return [performance.getEntriesByType('paint').find(e => e.name === 'first-contentful-paint').startTime,"
                " performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd]"))
        size = driver.execute_script("return [document.querySelectorAll('*').length, document.getElementById('head').textContent]")
        driver.execute_cdp_cmd("Performance.enable", {})
        driver.execute_script("window.seen = 0; new MutationObserver(() => ++window.seen)"
                              ".observe(document.getElementById('head'), {childList: true})")

        def work():
            found = driver.execute_cdp_cmd("Performance.getMetrics", {})["metrics"]
            return {m["name"]: m["value"] for m in found}, driver.execute_script("return window.seen")
        before, seen = work()
        wait_for("ten updates", lambda: work()[1] >= seen + 10, timeout=300)
        after, updates = work()
        spent = [1000 * (after[name] - before[name]) / (updates - seen)
                 for name in ("TaskDuration", "ScriptDuration", "LayoutDuration", "RecalcStyleDuration")]
        print("Chromium: painted after " + ", ".join(f"{p[0]:.0f}" for p in painted) + " ms, loaded after "
              + ", ".join(f"{p[1]:.0f}" for p in painted) + f" ms, {size[0]} elements; an update takes {spent[0]:.0f} ms "
              f"(scripts {spent[1]:.0f}, layout {spent[2]:.0f}, style {spent[3]:.0f})", flush=True)
    finally:
        driver.quit()
        for one in others:
            one.close()
        end(page)


def measure(scheduler, env, load):
    without, beside, page, before, after = [], [], [], [], []
    for _ in range(PAIRS):
        answered(load)
        without += share(scheduler)
        before.append(answered(load))
        shares = with_browsers(scheduler, env)
        after.append(answered(load))
        beside.append(shares[0])
        page.append(shares[1])
        print(f"without a page: scheduler {without[-1]:.2f} % of a core, {before[-1][1]}\n"
              f"fifty browsers: scheduler {beside[-1]:.2f} % of a core, {after[-1][1]}; page {page[-1]:.2f} %", flush=True)
    gap = statistics.median(b - a for a, b in zip(without, beside))
    print(f"medians: scheduler {statistics.median(without):.2f} % without, {statistics.median(beside):.2f} % with, of the "
          f"differences {gap:.2f} % of a core; page {statistics.median(page):.2f} %; a report is answered in "
          f"{statistics.median(m for m, _ in before):.3f} ms without, {statistics.median(m for m, _ in after):.3f} ms with", flush=True)


def main():
    drawn = HOSTS >= 1000 and is_installed()
    seconds = 2 * PAIRS * (SECONDS + 3) + 10 + GRAINS // 3000 + (90 if drawn else 0)
    load = subprocess.Popen([os.path.join(BIN, "perf_call_in"), str(HOSTS), str(seconds), "10"], stdout=subprocess.PIPE, text=True)
    directory = re.fullmatch(r"the pool is in (\S+)\n", load.stdout.readline())[1]
    scheduler = processes_in(directory)
    env = dict(os.environ, DCS_DIR=directory)
    try:
        lines = "".join(f"{i}\n" for i in range(GRAINS)).encode()
        subprocess.run([program("dcs"), "map", "--detach", "--", "sleep"], input=lines, env=env, check=True, stdout=subprocess.DEVNULL)
        measure(scheduler, env, load)
        if drawn:
            in_chromium(env)
        assert load.poll() is None, "the load has ended before the measurement"
        print(load.stdout.read(), end="")
        assert load.wait() == 0
    finally:
        if load.poll() is None:
            os.kill(scheduler[0], signal.SIGTERM)  # which ends the load
            load.wait()


if __name__ == "__main__":
    main()
