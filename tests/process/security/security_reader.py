#!/usr/bin/python3
"""An import is decoded by a process without rights: the rights that the kernel reports for it. A stopped
decoder delays no other user, and its death, or garbage, is an error only for the user who sent the stream. Needs root."""
import os
import random
import re
import shutil
import signal

from pool import tells, wait_for
from security_import import DONE, ERROR, GAMES, MAN, NEWS, Caller, Onlooker, Scheduler, stream_of
from users_host import need_root


def named(name):
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{pid}/comm").read() == name + "\n":
                found.append(int(pid))
        except OSError:
            pass
    return found


def status(pid, name):
    found = re.search(rf"^{name}:\s+(.*)$", open(f"/proc/{pid}/status").read(), re.M)
    return found and found.group(1)


def of_scheduler(scheduler, name):
    """The process of that name below that scheduler."""
    for pid in named(name):
        above = int(status(pid, "PPid"))
        if above == scheduler.process.pid or int(status(above, "PPid")) == scheduler.process.pid:
            return pid
    return None


def limit(pid, what):
    return re.search(rf"^{what} +\S+ +(\S+)", open(f"/proc/{pid}/limits").read(), re.M).group(1)


def held(pid):
    return sorted(os.readlink(f"/proc/{pid}/fd/{fd}").split(":")[0] for fd in os.listdir(f"/proc/{pid}/fd"))


def decoder_at_work(scheduler, caller, number, stream):
    """A decoder that is fenced and has nothing of the stream yet: the scheduler is suspended."""
    assert scheduler.start("reader.decode.begun=stop@1")
    games = caller()
    games.upload(stream)
    games.order_import(number, stream)
    wait_for("the scheduler to stand still", lambda: status(scheduler.process.pid, "State").startswith("T"))
    pid = wait_for("a decoder", lambda: of_scheduler(scheduler, "dcs_decoder"))
    return games, pid


def go_on(scheduler):
    os.kill(scheduler.process.pid, signal.SIGCONT)


def test_what_it_may_do(scheduler, stream):
    games, pid = decoder_at_work(scheduler, lambda: Caller(scheduler.path, GAMES), 901, stream)
    try:
        wait_for("its filter", lambda: status(pid, "Seccomp_filters") in ("2", None) and status(pid, "Seccomp") == "2")
        found = {"capabilities": status(pid, "CapEff"), "no new privileges": status(pid, "NoNewPrivs"),
                 "bounding set": status(pid, "CapBnd"), "filter of system calls": status(pid, "Seccomp"),
                 "files": limit(pid, "Max open files"), "bytes of a file": limit(pid, "Max file size"),
                 "processes": limit(pid, "Max processes"), "seconds": limit(pid, "Max cpu time"),
                 "memory": limit(pid, "Max data size"), "core file": limit(pid, "Max core file size"), "open": held(pid)}
        for what, value in found.items():
            print(f"a decoder: {what}: {value}", flush=True)
        assert int(found["capabilities"], 16) == 0 and int(found["bounding set"], 16) == 0, found
        assert found["no new privileges"] == "1" and found["filter of system calls"] == "2", found
        assert [found[what] for what in ("files", "bytes of a file", "processes", "core file")] == ["0"] * 4, found
        assert int(found["seconds"]) <= 11 and int(found["memory"]) < (65 << 20) + 8 * len(stream), found
        assert found["open"] == ["/dev/null"] * 3 + ["socket"], found
        os.kill(pid, signal.SIGKILL)
    finally:
        go_on(scheduler)
    kind, answer = games.hear()
    assert kind == ERROR and tells(answer, "process decoded killed signal 9"), (kind, answer)
    assert b"which concerns nothing else" in answer
    games.upload(stream)
    games.order_import(902, stream)
    assert games.hear()[0] == DONE
    assert not os.path.exists(f"/proc/{pid}") and not of_scheduler(scheduler, "dcs_decoder")
    scheduler.stop()
    print("a decoder that is killed costs its user an error")


def test_nobody_waits(scheduler, stream):
    games, pid = decoder_at_work(scheduler, lambda: Caller(scheduler.path, GAMES), 903, stream)
    try:
        os.kill(pid, signal.SIGSTOP)
    finally:
        go_on(scheduler)
    onlooker = Onlooker(scheduler.path)
    onlooker.start()
    news = Caller(scheduler.path, NEWS)
    news.upload(stream)
    news.order_import(1, stream)
    assert news.hear()[0] == DONE  # a decoder of its own
    wait_for("another user to be served", lambda: len(onlooker.times) > 20)
    onlooker.worst()
    assert status(pid, "State").startswith("T")
    games.socket.close()  # who leaves is not waited for either
    os.kill(pid, signal.SIGKILL)
    wait_for("its end", lambda: not os.path.exists(f"/proc/{pid}"))
    again = Caller(scheduler.path, GAMES)
    again.upload(stream)
    again.order_import(904, stream)
    assert again.hear()[0] == DONE
    scheduler.stop()
    print("no other user waits for a stopped decoder")


def garbage(stream):
    rng = random.Random(21)
    yield b""
    yield b"\xff" * 64
    for _ in range(150):
        bytes_ = bytearray(stream)
        for _ in range(rng.randint(1, 8)):
            bytes_[rng.randrange(len(bytes_))] = rng.randrange(256)
        yield bytes(bytes_[:rng.randint(1, len(bytes_))])


def test_garbage(scheduler, stream):
    assert scheduler.start()
    games, refused = Caller(scheduler.path, GAMES), 0
    reader = of_scheduler(scheduler, "dcs_reader")
    for number, bytes_ in enumerate(garbage(stream)):
        if bytes_:
            games.upload(bytes_)
        games.order_import(1000 + number, bytes_)
        kind, answer = games.hear()
        assert kind in (DONE, ERROR) and b"process that decoded" not in answer, answer
        refused += kind == ERROR
    assert refused > 50 and scheduler.process.poll() is None and of_scheduler(scheduler, "dcs_reader") == reader
    assert not of_scheduler(scheduler, "dcs_decoder")
    print(f"{refused} imports of garbage were refused")
    os.kill(reader, signal.SIGKILL)
    wait_for("a word about it", lambda: tells(scheduler.log(), "reader killed signal 9 imports sessions refused"))
    games.upload(stream)
    games.order_import(2000, stream)
    kind, answer = games.hear()
    assert kind == ERROR and b"the scheduler's reader is gone" in answer, answer
    onlooker = Onlooker(scheduler.path)
    onlooker.start()
    wait_for("another user to be served", lambda: len(onlooker.times) > 20)
    onlooker.worst()
    scheduler.stop()
    print("without its reader the scheduler serves all but imports")


if __name__ == "__main__":
    need_root("calling as several users")
    scheduler = Scheduler()
    stream = stream_of(b"\2" * 20)
    try:
        test_what_it_may_do(scheduler, stream)
        test_nobody_waits(scheduler, stream)
        test_garbage(scheduler, stream)
    except BaseException:
        print(scheduler.log()[-4000:], flush=True)
        raise
    finally:
        if scheduler.process and scheduler.process.poll() is None:
            go_on(scheduler)
        scheduler.stop()
        shutil.rmtree(scheduler.base, ignore_errors=True)
