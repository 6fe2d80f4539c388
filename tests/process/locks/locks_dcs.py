#!/usr/bin/python3
"""DCS's own atoms with real daemons: each cannot run twice at once, a scheduler whose store is not guarded any more commits
nothing, and a control program that cron starts by `dcs_begin -n -i -e` runs not too often, not twice, and not for ever."""
import os
import shutil
import subprocess

from pool import Pool, lock_holder, program, start_time, tells, wait_for

TESTS = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(program("dcs")))), "tests")
STEPS, JOB = os.path.join(TESTS, "steps"), os.path.join(TESTS, "cron_job")
BUSY, TOO_SOON = 75, 79


def expected(grains, steps):
    text = "".join(f"step {i}\n" for i in range(1, steps + 1))
    return "".join(f"grain {g}\n{text}code 0\n" for g in range(1, grains + 1))


class Cron:
    def __init__(self, pool):
        self.pool, self.hang = pool, os.path.join(pool.base, "hang")
        self.locks = os.path.join(pool.base, "locks")
        os.mkdir(self.locks, 0o700)
        pool.env["DCS_LOCK_DIR"] = self.locks

    def command(self, options, session):
        return [program("dcs_begin"), *options, "--", JOB, str(session), "2", "20", STEPS, self.hang]

    def start(self, options, session):
        return self.pool.start(self.command(options, session), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def run(self, options, session):
        process = self.start(options, session)
        out, err = process.communicate(timeout=300)
        return process.returncode, out, err

    def until_free(self, options, session):
        """As cron does: it comes again while a run lasts."""
        while True:
            answer = self.run(options, session)
            if answer[0] != BUSY:
                return answer

    def hanging(self):
        """The pids that a hanging run wrote down."""
        try:
            found = [int(word) for word in open(self.hang + ".pids").read().split()]
            os.unlink(self.hang + ".pids")
            return found
        except OSError:
            return []  # ended before it came that far

    def started_hanging(self, options, session):
        open(self.hang, "w").close()
        process = self.start(options, session)
        wait_for("the program to hang", lambda: os.path.exists(self.hang + ".pids"))
        found = self.hanging()
        os.unlink(self.hang)
        assert found[0] == process.pid, "the program is not the process that cron started"
        return process, [(pid, start_time(pid)) for pid in found]


def not_too_often(cron):
    code, out, err = cron.run([], 1)
    assert (code, out) == (0, expected(2, 20)), (code, out, err)
    assert not os.listdir(cron.locks), "a lock without being asked for one"
    guarded = ["-n", "-i", "60", "-e", "120"]
    code, out, err = cron.run(guarded, 2)
    assert (code, out) == (0, expected(2, 20)), (code, out, err)
    code, out, err = cron.run(guarded, 3)
    assert (code, out) == (TOO_SOON, ""), (code, out, err)
    assert "3" not in [str(s["session"]) for s in cron.pool.json("session", "ls")["sessions"]], "it was started all the same"


def scripts_are_programs(cron):
    """The lock of a script is not that of its interpreter."""
    first, second, hold, here = (os.path.join(cron.pool.base, name) for name in ("first.sh", "second.sh", "hold", "here"))
    for script in (first, second):
        with open(script, "w") as file:
            file.write(f"touch {here}; while [ -e {hold} ]; do sleep .05; done; echo $0 $1\n")

    def start(*words):
        return cron.pool.start([program("dcs_begin"), "-n", "sh", *words], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    open(hold, "w").close()
    running = start(first, second)
    wait_for("the first script", lambda: os.path.exists(here))
    again, other = start(first), start("-e", second, "word")
    assert again.wait(timeout=300) == BUSY, again.communicate()
    os.unlink(hold)
    for process, words in ((running, [first, second]), (other, [second, "word"])):
        out, err = process.communicate(timeout=300)
        assert out.split() == words, (out, err)


def ended_without_a_reader(cron):
    """Also a program whose standard error, a FIFO, has no reader any more is ended at its limit."""
    fifo = os.path.join(cron.pool.base, "errors")
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    writer = os.open(fifo, os.O_WRONLY)
    process = cron.pool.start([program("dcs_lock"), "--keep=exec", "-e", "1s", "-a", "no:reader", "--", "sleep", "1000"], stderr=writer)
    os.close(reader), os.close(writer)
    assert process.wait(timeout=120) != 0


def not_twice_and_not_for_ever(cron):
    hung, tree = cron.started_hanging(["-n", "-e", "120"], 4)
    code, out, err = cron.run(["-n", "-e", "120"], 4)
    assert (code, out) == (BUSY, "") and str(hung.pid) in err, (code, out, err)
    # A start that gives a run less time ends it with all its processes. It hangs, too, and its keeper ends it.
    open(cron.hang, "w").close()
    code, out, err = cron.until_free(["-e", "1s"], 4)
    assert code != 0 and out == "" and ": ended after" in err and "at its limit" in err, (code, out, err)
    assert hung.wait(timeout=300) != 0
    for pid, start in tree:
        assert start_time(pid) != start, f"process {pid} of the hung run lives"
    for pid in cron.hanging():
        wait_for(f"the end of {pid}", lambda: start_time(pid) is None)
    os.unlink(cron.hang)
    code, out, err = cron.until_free(["-n", "-e", "120"], 4)  # the session goes on where it was
    assert (code, out) == (0, expected(2, 20)), (code, out, err)
    log = open(os.path.join(cron.locks, "run.log")).read()
    assert log.count(" expired ") >= 2 and " done " in log, log


def refused(arguments, holder, env=None):
    result = subprocess.run(arguments, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=120, env=env)
    assert result.returncode != 0 and f"locked by process {holder}" in result.stdout, (arguments, result)


def daemons_are_alone(pool):
    scheduler, server = os.path.join(pool.dir, "scheduler"), os.path.join(pool.dir, "servers/local1")
    holders = {path: lock_holder(path) for path in (os.path.join(scheduler, "lock"), os.path.join(scheduler, "state/lock"),
                                                    os.path.join(server, "lock"), os.path.join(server, "launcher.lock"))}
    assert all(holders.values()), holders
    refused([program("dcs_scheduler"), "--dir", scheduler], holders[os.path.join(scheduler, "lock")])
    refused([program("dcs_grainserver"), "--name", "local1", "--dir", server, "--scheduler", os.path.join(scheduler, "x")],
            holders[os.path.join(server, "lock")])
    refused([program("dcs_launcher"), "--dir", server, "--name", "local1"], holders[os.path.join(server, "launcher.lock")])
    other = os.path.join(pool.base, "other")  # another directory, the same store
    os.mkdir(other)
    os.symlink(os.path.join(scheduler, "state"), os.path.join(other, "state"))
    shutil.copy(os.path.join(scheduler, "hosts"), other)
    refused([program("dcs_scheduler"), "--dir", other], holders[os.path.join(scheduler, "state/lock")])


def pool_work_is_alone(pool):
    marks = [os.path.join(pool.base, name) for name in ("working", "ready")]
    other = pool.start([program("dcs_lock"), os.path.join(pool.dir, "up.lock"), "--", "sh", "-c",
                        f"touch {marks[0]}; sleep 1; touch {marks[1]}"])
    wait_for("the work to begin", lambda: os.path.exists(marks[0]))
    pool.up()
    assert os.path.exists(marks[1]), "`dcs up` did not wait for another process's work on the pool"
    assert other.wait(timeout=300) == 0


def unguarded_store_is_not_written(pool):
    lock = os.path.join(pool.dir, "scheduler/state/lock")
    pid = lock_holder(lock)
    os.rename(lock, lock + ".away")
    result = pool.start([program("dcs"), "run", "--", "true"], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    wait_for("the scheduler to end", lambda: start_time(pid) is None)
    assert tells(open(os.path.join(pool.dir, "scheduler/log")).read(), "lock removed replaced")
    pool.up()
    assert result.wait(timeout=300) == 0
    assert lock_holder(lock) not in (None, pid)
    os.unlink(lock + ".away")


def main():
    with Pool(1, 2, 0.5) as pool:
        daemons_are_alone(pool)
        pool_work_is_alone(pool)
        cron = Cron(pool)
        not_too_often(cron)
        scripts_are_programs(cron)
        ended_without_a_reader(cron)
        not_twice_and_not_for_ever(cron)
        unguarded_store_is_not_written(pool)
    print("5 passed, 0 failed")


if __name__ == "__main__":
    main()
