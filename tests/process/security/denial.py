#!/usr/bin/python3
"""One user does everything at once that could keep a scheduler busy: idle connections, clients of a byte a second, frames
that announce gigabytes, thousands of sessions, a flood of submissions, answers that are never read. Another user calls
meanwhile. His calls are all answered, and how long they took is printed beside how long they take in peace; nothing is
judged by seconds. The scheduler's memory stays bounded, and what the limits refuse is refused by name."""
import os
import re
import resource
import select
import socket
import threading
import time

from authorisation import SMALL
from pool import FULL, start_time, wait_for
from speakers import CODES, OTHER, OWNER, Speaker, SpeakersPool, name_of, need_root, quoted
from cve_list import reseal

SESSIONS = 10_000 if FULL else 1_000
IDLE, SLOW, BOMBS = 1_000, 100, 300
CALLS = 200
MEMORY_MB = 400  # held_bytes, what waits, a turn's bytes, and what sessions and grains themselves are


class World:
    def __init__(self, pool):
        self.pool, self.pid = pool, pool.running["scheduler"].pid
        self.started = start_time(self.pid)
        self.calm, self.tool = Speaker(pool, OTHER), Speaker(pool, 0)
        self.token = pool.token_of(Speaker(pool, OWNER))
        assert self.calm.open().kind == "Welcome"
        self.open_sockets, self.over, self.counts, self.lock = [], False, {}, threading.Lock()
        self.connect_lock = threading.Lock()

    def frame(self, kind, **fields):
        words = " ".join(f"{key}={quoted(value)}" for key, value in fields.items())
        return bytes.fromhex(self.tool.order(f"frame {kind} {words}"))

    def connect(self, uid=OWNER):
        s = socket.socket(socket.AF_UNIX)
        with self.connect_lock:  # who we are is of the whole process
            os.setegid(self.pool.gid)
            os.seteuid(uid)
            try:
                s.connect(os.path.join(self.pool.directory, "user.sock"))
            finally:
                os.seteuid(0)
                os.setegid(0)
        return s

    def count(self, what, more=1):
        with self.lock:
            self.counts[what] = self.counts.get(what, 0) + more

    def memory_mb(self):
        return int(re.search(r"VmHWM:\s+(\d+)", open(f"/proc/{self.pid}/status").read()).group(1)) >> 10

    def calls(self, n):
        """So many calls of the other user: how long each took, in ms, sorted."""
        times = []
        for _ in range(n):
            before = time.monotonic()
            heard = self.calm.ask("GetAuth", ident="calm")  # it is committed before it is answered
            assert heard.kind == "AuthReply", heard
            times.append((time.monotonic() - before) * 1000)
        return sorted(times)


def heard_on(s, seconds, first=False):
    """What comes within that time, or with `first` as soon as something comes; and whether that was the end."""
    got, end, poll = b"", time.monotonic() + seconds, select.poll()
    poll.register(s, select.POLLIN)
    while poll.poll(max(0, (end - time.monotonic()) * 1000)):
        try:
            data = s.recv(1 << 20)
        except OSError:
            return got, True
        if not data:
            return got, True
        got += data
        if first:
            break
    return got, False


# ---- what the flooding user does, each in a thread of its own ---------------------------------

def idle_connections(w):
    """More than he may have; those above it hear why."""
    wait_for("the others to have connections", lambda: w.counts.get("bombs", 0) >= 12 and w.counts.get("single bytes"), 300)
    refused = 0
    for _ in range(IDLE):
        s = w.connect()
        w.open_sockets.append(s)
        if b"the limit `connections` is" in heard_on(s, 0)[0]:
            refused += 1
    w.count("idle connections", IDLE)
    w.count("told that it is too many", refused)
    waiting, end = list(w.open_sockets), time.monotonic() + 120
    while time.monotonic() < end and w.counts["told that it is too many"] <= IDLE // 4:  # it has other things to do
        for s in list(waiting):
            got, ended = heard_on(s, 0)
            w.count("told that it is too many", b"the limit `connections` is" in got)
            if ended:
                waiting.remove(s)
        time.sleep(0.1)


def again(w):
    """A connection of his, as soon as he may have one more."""
    while not w.over:
        try:
            s = w.connect()
            s.sendall(w.hello)
            got, ended = heard_on(s, 5, first=True)
            if got and not ended and b"the limit `connections` is" not in got:
                return s
            s.close()
        except OSError:
            pass
        time.sleep(0.05)
    return None


def byte_by_byte(w):
    sockets = [s for s in (again(w) for _ in range(SLOW // 10)) if s]
    frame = w.gexec
    for i in range(len(frame)):
        for s in sockets:
            try:
                s.send(frame[i:i + 1])
                w.count("single bytes")
            except OSError:
                pass
        time.sleep(0.25)
        if w.over:
            return


def bombs(w):
    """64 bytes that say that gigabytes follow, in the header and inside."""
    while not w.over and w.counts.get("bombs", 0) < BOMBS:
        for place in (8, 24, 28, 32):
            s = again(w)
            if not s:
                return
            bomb = bytearray(w.gexec[:64])
            bomb[place:place + 4] = b"\xf0\xff\xff\xff"
            if place != 8:
                bomb[8:12] = (40).to_bytes(4, "little")
                bomb = bytearray(reseal(bomb))
            try:
                s.sendall(bytes(bomb))
                heard_on(s, 0.05)
            except OSError:
                pass
            s.close()
            w.count("bombs")


def sessions(w):
    s = again(w)
    for number in range(SESSIONS):
        if w.over or s is None:
            return
        s.sendall(w.open_session(1000 + number))
        if number % 50 == 49:
            heard_on(s, 0.02)
        w.count("sessions asked for")


def push(w, more, reads, what):
    """Sends what `more` gives, as fast as it goes, and waits for no answer."""
    s, out = None, b""
    while not w.over:
        if s is None:
            s, out = again(w), b""
            if s is None:
                return
            s.setblocking(False)
        if not out:
            out = more()
            w.count(what)
        poll = select.poll()
        poll.register(s, select.POLLOUT | (select.POLLIN if reads else 0))
        events = sum(event for _, event in poll.poll(200))
        readable, writable = events & select.POLLIN, events & (select.POLLOUT | select.POLLHUP | select.POLLERR)
        try:
            if writable:
                out = out[s.send(out):]
            if readable:
                data = s.recv(1 << 16)
                w.count("refused by name", data.count(b"queued_requests allows") + data.count(b"queued_bytes allows"))
                if not data:
                    raise OSError("closed")
        except BlockingIOError:
            pass
        except OSError:
            w.count("times that it was cut off")
            s.close()
            s = None
    if s is not None:
        s.close()


def flood(w):
    """Submissions of ever new grains, each to be committed."""
    numbers = iter(range(10, 1 << 30))
    push(w, lambda: b"".join(w.submit(next(numbers)) for _ in range(100)), True, "hundreds of submissions")


def bulk(w):
    push(w, lambda: w.gexec_many * 16, True, "megabytes of submissions")


def deaf(w):
    """Asks for everything and reads nothing of it."""
    push(w, lambda: w.export * 64, False, "times 64 questions whose answers are not read")


def under_attack(w):
    w.hello = w.frame("Hello", token=w.token)
    w.gexec = w.frame("Gexec", session=1, grain=1, **SMALL)
    w.gexec_many = w.frame("GexecMany", session=1, **{"orders.size": 1, "orders[0].grain": 2, **{
        "orders[0]." + key: value for key, value in SMALL.items()}, "orders[0].spec.input": "x" * 60000})
    w.export = w.frame("ExportPage", user=name_of(OWNER), session=1, after=-1, most=0)
    template = w.frame("OpenSession", number=1, mode=1, sent_reset=0)
    w.open_session = lambda n: reseal(template[:24] + n.to_bytes(4, "little") + template[28:])
    submit = w.frame("Gexec", session=1, grain=3, **SMALL, **{"spec.input": ""})
    w.submit = lambda n: reseal(submit[:28] + n.to_bytes(4, "little") + submit[32:])
    s = again(w)
    s.sendall(w.open_session(1))
    heard_on(s, 1)
    s.sendall(w.gexec_many)
    heard_on(s, 1)
    threads = [threading.Thread(target=job, args=(w,)) for job in
               (flood, bulk, deaf, deaf, byte_by_byte, bombs, sessions, idle_connections)]
    for thread in threads:
        thread.start()
    try:
        wait_for("the flood to begin", lambda: w.counts.get("idle connections") and w.counts.get("sessions asked for"), 400)
        times = w.calls(CALLS)
        print(f"    while the flood went on: {[round(t) for t in times[-5:]]} ms were the slowest calls")
        wait_for("all sessions asked for", lambda: w.counts.get("sessions asked for", 0) >= SESSIONS or not FULL, 1200)
    finally:
        w.over = True
        for thread in threads:
            thread.join()
        for s in w.open_sockets:
            s.close()
    return times


def at(times, part):
    return times[min(len(times) - 1, int(len(times) * part))]


def main():
    need_root()
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))
    with SpeakersPool() as pool:
        with open(os.path.join(pool.directory, "limits"), "w") as file:
            file.write("connections 200\nqueued_requests 1000\n")
        pool.dcs("reload")
        with open(os.path.join(pool.directory, "limits"), "w") as file:
            file.write("connections 200\nqueued_request 1000\n")
        refused = pool.dcs("reload", check=False)
        assert refused.returncode == 1 and "limits:2: unknown limit `queued_request`" in refused.stderr, refused
        w = World(pool)
        calm = w.calls(CALLS)
        times = under_attack(w)
        for what, n in sorted(w.counts.items()):
            print(f"    {n} {what}")
        print(f"another user's call, ms: in peace median {at(calm, 0.5):.1f} p99 {at(calm, 0.99):.1f}; "
              f"meanwhile median {at(times, 0.5):.1f} p99 {at(times, 0.99):.1f}")
        print(f"the scheduler's memory was {w.memory_mb()} MiB at most")
        assert start_time(w.pid) == w.started, "the scheduler ended"
        assert w.memory_mb() < MEMORY_MB, w.memory_mb()
        assert w.counts["told that it is too many"] > IDLE // 4, w.counts
        assert w.counts.get("refused by name", 0) > 0, w.counts
        assert w.counts["bombs"] > 0 and w.counts["single bytes"] > 0, w.counts
        # When it is over he can work again like each other peer.
        owner = Speaker(pool, OWNER)
        wait_for("a connection for the user who flooded", lambda: owner.open(token=w.token).kind == "Welcome")
        assert owner.ask("OpenSession", number=5, mode=1, sent_reset=0).kind in ("OpenReply",)
        assert owner.ask("Gexec", session=5, grain=1, **SMALL).error() in (None, CODES["LIMIT"])


if __name__ == "__main__":
    main()
