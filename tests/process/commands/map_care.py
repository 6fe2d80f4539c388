#!/usr/bin/python3
"""What `dcs map` and `dcs run` do not lose: the inputs of a second -a, files of others in --results, the session of killed
grains, what failed in an interrupted run; and with a reader that has gone, a full disk, special files and a log in use."""
import fcntl
import os
import re
import signal
import stat
import struct
import subprocess
import termios

from pool import Pool, about, program, tells, wait_for

DCS = program("dcs")


def write(folder, name, text=""):
    with open(os.path.join(folder, name), "w") as file:
        file.write(text)


def read_text(path):
    with open(path) as file:
        return file.read()


def several_files(pool, folder):
    write(folder, "f1", "a\nb\n")
    write(folder, "f2", "1\n2\n")
    for words in (["-a", "f1", "-a", "f2", "--", "echo", "{1}-{2}"], ["--", "echo", "{1}-{2}", "::::", "f1", "f2"]):
        assert pool.dcs("map", "--new", *words, cwd=folder).stdout == b"a-1\na-2\nb-1\nb-2\n"
    assert pool.dcs("map", "-a", "f2", "--", "echo", cwd=folder).stdout == b"1\n2\n"


def results_of_others(pool, folder):
    os.mkdir(os.path.join(folder, "res"))
    write(folder, "res/2.out", "mine")
    write(folder, "res/7.out", "mine")
    words = ["map", "--results", "res", "--", "echo"]
    done = pool.dcs(*words, ":::", "x", "y", cwd=folder, check=False)
    assert done.returncode == 255 and b"2.out that this map did not make" in done.stderr, done
    with open(os.path.join(folder, "res/2.out")) as file:
        assert file.read() == "mine"
    os.remove(os.path.join(folder, "res/2.out"))
    for _ in range(2):  # its own files do not matter
        pool.dcs(*words, ":::", "x", "y", cwd=folder)
    pool.dcs(*words, ":::", "x", "y", "z", cwd=folder)
    done = pool.dcs(*words, ":::", *"xyzabcd", cwd=folder, check=False)
    assert done.returncode == 255 and b"7.out" in done.stderr, done


def started(pool, count):
    return wait_for("the grains", lambda: pool.json("session", "ls")["sessions"][-1:] and
                    (row := pool.json("session", "show", "last")["session"])["running"] == count and row["session"])


def killed(pool, folder):
    with pool.start([DCS, "map", "--", "sleep", "1000", ":::", "0", "1"], cwd=folder, stderr=subprocess.PIPE) as running:
        number = started(pool, 2)
        pool.dcs("grain", "kill", f"{number}:all")
        said = running.communicate(timeout=120)[1]
    assert running.returncode == 2 and b"none ran" not in said, said
    assert pool.dcs("session", "show", str(number)).returncode == 0


def interrupted(pool, folder):
    """The one that failed runs at once when the same command is said again."""
    words = ["map", "--new", "--", "sh", "-c", "echo $1 >>ran; until test -e go; do sleep 0.05; done; test $1 = 0 || test -e mended", "sh", ":::", "0", "1"]
    with pool.start([DCS, *words], cwd=folder, stderr=subprocess.PIPE) as running:
        number = started(pool, 2)
        running.send_signal(signal.SIGINT)
        assert tells(running.communicate(timeout=120)[1], "Run same command again, without --new, take results")
    write(folder, "go")
    wait_for("their end", lambda: pool.json("session", "show", str(number))["session"]["finished"] == 2)
    write(folder, "mended")
    pool.dcs("map", *words[2:], cwd=folder)
    with open(os.path.join(folder, "ran")) as file:
        assert sorted(file.read().split()) == ["0", "1", "1"]


def changed_input(pool, folder):
    """An input that changes when its grain has succeeded is refused, as a changed program is, while some are left; grains that change
    their own inputs, or remove them, go on."""
    for name in ("old", "self", "gone", "left"):
        write(folder, name, name + "\n")
    words = ["map", "--", "sh", "-c", 'cat $1; case $1 in self) echo mine >>self;; gone) rm gone;; left) until test -e went-on; do sleep 0.05; done;; esac',
             "sh", ":::", "old", "self", "gone", "left"]

    def again(*options, code=0):
        done = pool.dcs(words[0], *options, *words[1:], cwd=folder, check=False)
        assert done.returncode == code, done
        return done
    for _ in range(2):
        running = pool.start([DCS, *words], cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        told = running.stderr.readline()  # a change that its grain made
        session = wait_for("three ends", lambda: (row := pool.json("session", "show", "last")["session"])["running"] == 1 and
                           row["finished"] == 3 and row["session"])
        running.kill()
        running.communicate(timeout=120)
    assert tells(told, f"session {session}: resumed 3 of 4"), told
    write(folder, "old", "new\n")
    told = again(code=255).stderr
    write(folder, "went-on")
    assert tells(told, f"old has changed since session {session} began 3 of 4 grains") and tells(told, f"--session {session} continues --new"), told
    assert again("--session", str(session)).stdout == b"old\nself\ngone\nleft\n"


def changed_meanwhile(pool, folder):
    """A script, or an input after its grain, that is edited while its map runs is named at the end; grains may write to their own."""
    def edit(words, first, change):
        for name in ("edit-on", "edit-seen"):
            if os.path.exists(os.path.join(folder, name)):
                os.remove(os.path.join(folder, name))
        with pool.start([DCS, "map", "--new", "-j1", "--", "sh", *words], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
            wait_for("a grain", lambda: os.path.exists(os.path.join(folder, first)))
            change()
            write(folder, "edit-on")
            out, told = running.communicate(timeout=120)
        assert running.returncode == 0, told
        return out, told

    def new_script():
        write(folder, "script.new", "echo v2")
        os.rename(os.path.join(folder, "script.new"), os.path.join(folder, "script"))
    write(folder, "script", "touch edit-seen; until test -e edit-on; do sleep 0.05; done; echo v1")
    out, told = edit(["script", ":::", "1", "2"], "edit-seen", new_script)
    assert out == b"v1\nv2\n" and tells(told, "warning: script has changed while map ran versions may be mixed --new") and told.count(b"changed") == 1, told
    again = pool.dcs("map", "--replay", "-j1", "--", "sh", "script", ":::", "1", "2", cwd=folder)
    assert b"while" not in again.stderr, again
    write(folder, "in1", "1\n"), write(folder, "in2", "2\n")
    words = ["-c", "echo more >>$1; test $1 = in1 || touch edit-seen; test $1 = in1 || until test -e edit-on; do sleep 0.05; done", "sh", ":::", "in1", "in2"]
    assert b"changed" not in edit(words, "edit-seen", lambda: None)[1]
    assert tells(edit(words, "edit-seen", lambda: write(folder, "in1", "other\n"))[1], "warning: in1 has changed while map ran")


def repaired_input(pool, folder):
    """Of a map that ended with failures only these run again when their inputs were mended; if another input changed, all do. A map of
    the same command with other inputs is said to be another one."""
    for name, text in (("ok", "good\n"), ("bad", "wrong\n")):
        write(folder, name, text)
    words = ["map", "--", "sh", "-c", "echo $1 >>tried; grep -q good $1", "sh", ":::", "ok", "bad"]
    assert pool.dcs(*words, cwd=folder, check=False).returncode == 1
    write(folder, "bad", "good\n")
    told = pool.dcs(*words, cwd=folder).stderr
    assert tells(told, "1 of 2 grains failed in last run and runs again bad has changed, on which these do not depend"), told
    assert sorted(read_text(os.path.join(folder, "tried")).split()) == ["bad", "bad", "ok"]
    write(folder, "bad", "wrong\n")
    assert pool.dcs(*words, cwd=folder, check=False).returncode == 1  # complete before: all run
    write(folder, "ok", "good, too\n")
    told = pool.dcs(*words, cwd=folder, check=False).stderr
    assert tells(told, "ok has changed since: all run"), told
    assert sorted(read_text(os.path.join(folder, "tried")).split()) == ["bad"] * 4 + ["ok"] * 3
    write(folder, "conf", "v1\n")
    named = ["map", "--", "sh", "-c", "cat ${0#--conf=}", "--conf=conf", ":::"]
    assert pool.dcs(*named, "1", cwd=folder).stdout == b"v1\n"
    write(folder, "conf", "v2\n")
    assert pool.dcs(*named, "1", "2", cwd=folder).stdout == b"v2\nv2\n"
    told = pool.dcs(*words[:-1], cwd=folder).stderr
    assert tells(told, "1 grain session ran the same words with other inputs all run"), told
    failed = ["sh", "-c", "exit 3", "sh", ":::"]
    told = pool.dcs("map", "--new", "--", *failed, "1", "2", cwd=folder, check=False).stderr.decode()
    number = re.search(r"session (\d+)", told).group(1)
    told = pool.dcs("map", "--", *failed, "2", "1", cwd=folder, check=False).stderr
    assert tells(told, f"session {number} ran the same words with other inputs"), told  # though that began with --new
    told = pool.dcs("grain", "restart", number + ":1", check=False).stderr
    assert tells(told, "again: it runs what failed") and b"--new" not in told, told


def submitted(pool, folder):
    """So it is with a job file whose process was killed."""
    write(folder, "job.toml", '[[grain]]\nname = "one"\ncommand = ["sh", "-c", "until test -e went; do sleep 0.05; done; test -e good"]\n')
    with pool.start([DCS, "submit", "--wait", "job.toml"], cwd=folder) as running:
        number = started(pool, 1)
        running.kill()
    write(folder, "went")
    wait_for("its end", lambda: pool.json("session", "show", str(number))["session"]["finished"] == 1)
    write(folder, "good")
    pool.dcs("submit", "--wait", "job.toml", cwd=folder)


def without_output(pool, folder):
    """A grain that ends without its output has failed, and alone runs again."""
    words = ["map", "--joblog", "lacks", "--output", "out={}.made", "--", "sh", "-c",
             f"echo $1 >>{folder}/tries; test $1 = 0 || test -e {folder}/cured || exit 0; echo $1 >out", "sh", ":::", "0", "1"]
    assert pool.dcs(*words, cwd=folder, check=False).returncode == 1
    number = pool.json("session", "show", "last")["session"]["session"]
    assert pool.dcs("grain", "ls", "last", "--state", "failed", "-o", "name").stdout.decode().split() == [f"{number}:2"]
    assert pool.json("session", "show", "last")["session"]["failed"] == 1
    assert tells(pool.dcs("grain", "explain", f"{number}:2").stdout, "failed on code 0 without making the file out"), number
    rows = pool.json("grain", "ls", str(number))["grains"] + [pool.json("grain", "show", f"{number}:2")["grain"]]
    assert [row["failed"] for row in rows if row["grain"] == 2] == [True, True], rows
    assert "without" not in pool.dcs("grain", "explain", f"{number}:1").stdout.decode()
    assert sorted(row.split("\t")[0] + row.split("\t")[6] for row in read_text(os.path.join(folder, "lacks")).splitlines()[1:]) == ["10", "21"]
    write(folder, "cured")
    pool.dcs(*words, cwd=folder)
    assert read_text(os.path.join(folder, "1.made")) == "1\n"
    assert sorted(read_text(os.path.join(folder, "tries")).split()) == ["0", "1", "1"]


def how_they_ended(pool, folder):
    """Also without a word on standard error; first what the grain says, then what it lacks, and what helps."""
    told = pool.dcs("map", "--", "sh", "-c", "test $1 != kill || kill -9 $$; exit $1", "sh", ":::", "0", "3", "kill", cwd=folder, check=False)
    assert told.returncode == 2 and tells(told.stderr, "2 of 3 grains failed (exit code 3, signal 9)"), told
    write(folder, "here", "text")
    words = ["map", "--output", "out={}.sorted", "--", "sh", "-c", "cat $1 >/dev/null || exit 4; echo >out", "sh", "here"]
    lines = pool.dcs(*words, ":::", "here", cwd=folder, check=False).stderr.decode().splitlines()
    order = [next(i for i, line in enumerate(lines) if about(line, text)) for text in (
        "here: No such file", "exit code 4: without making the file out", "1 of 1 grain failed (exit code 4)", "directory of its own here --file {}")]
    assert order == sorted(order), lines
    assert pool.dcs("map", "--file", "{}", *words[1:-1], "{}", ":::", "here", cwd=folder).stderr.count(b"\n") == 1


def no_reader(pool, folder):
    with pool.start([DCS, "run", "--live", "--", "sh", "-c", "while echo line; do sleep 0.1; done"], cwd=folder, stdout=subprocess.PIPE,
                    stdin=subprocess.DEVNULL) as running:
        assert running.stdout.readline() == b"line\n"
        running.stdout.close()
        assert running.wait(timeout=120) == 141


def slow_reader(pool, folder):
    """One that takes nothing more, as a pager, keeps no command from a signal."""
    reader, writer = os.pipe()
    size = fcntl.fcntl(writer, fcntl.F_SETPIPE_SZ, 4096)
    words = ["map", "--new", "--", "sh", "-c", "yes | head -c 200000", "sh", ":::", "0", "1"]
    with pool.start([DCS, *words], cwd=folder, stdout=writer, stderr=subprocess.DEVNULL) as running:
        os.close(writer)
        try:
            wait_for("a full pipe", lambda: struct.unpack("i", fcntl.ioctl(reader, termios.FIONREAD, bytes(4)))[0] == size)
            running.send_signal(signal.SIGTERM)
            assert running.wait(timeout=300) == 128 + signal.SIGTERM, running.returncode
        finally:
            os.close(reader)
    pool.dcs("session", "close", "last")


def full_disk(pool, folder):
    """A piece that could not be shown is not forgotten at the end: the session stays."""
    with open("/dev/full", "w") as full:
        running = pool.start([DCS, "run", "--live", "-n", "--", "sh", "-c", "echo hi; sleep 2"], cwd=folder, stdout=full,
                             stderr=subprocess.PIPE)
    said = running.communicate(timeout=120)[1]
    assert running.returncode == 125 and b"cannot be written" in said, (running.returncode, said)
    assert pool.dcs("grain", "cat", "last:1").stdout == b"hi\n"


def closed_input(pool, folder):
    with pool.start(["sh", "-c", '"$0" run -- cat <&-', DCS], cwd=folder, stderr=subprocess.PIPE) as running:
        said = running.communicate(timeout=120)[1]
    assert running.returncode == 0, said


def places(pool, folder):
    """An output goes through a link and into a pipe, and does not take their places."""
    path = lambda name: os.path.join(folder, name)
    os.symlink("target", path("link"))
    write(folder, "target", "old")
    os.mkfifo(path("pipe"))
    make = ["sh", "-c", "echo made >made"]
    pool.dcs("run", "-n", "--output", "made=link", "--", *make, cwd=folder)
    assert os.readlink(path("link")) == "target" and read_text(path("target")) == "made\n"
    with pool.start(["cat", "pipe"], cwd=folder, stdout=subprocess.PIPE) as reader:
        pool.dcs("run", "-n", "--output", "made=pipe", "--", *make, cwd=folder)
        assert reader.communicate(timeout=120)[0] == b"made\n" and stat.S_ISFIFO(os.stat(path("pipe")).st_mode)


def log_of_another(pool, folder):
    """The same command again, which is refused, leaves the log of the one that runs."""
    command = ["map", "--joblog", "jobs", "--", "sh", "-c", "until test -e $1; do sleep 0.1; done", "sh", ":::", "/", "log-goes-on"]
    log = os.path.join(folder, "jobs")
    with pool.start([DCS, *command], cwd=folder, stderr=subprocess.DEVNULL) as running:
        wait_for("the first line", lambda: os.path.exists(log) and len(read_text(log).splitlines()) == 2)
        assert pool.dcs(*command, cwd=folder, check=False).returncode == 255
        write(folder, "log-goes-on")
        running.communicate(timeout=120)
    assert [line.split("\t")[0] for line in read_text(log).splitlines()] == ["Seq", "1", "2"], read_text(log)


def no_result(pool, folder):
    """What an earlier run left in the place of a result is not taken for one of this run."""
    for name in "first", "second":
        write(folder, name, "#!/bin/sh\necho here\n")
        os.chmod(os.path.join(folder, name), 0o755)
    command = ["--results", "found", "--", "{}", ":::", "./first", "./second"]
    pool.dcs("map", *command, cwd=folder)
    os.remove(os.path.join(folder, "second"))
    assert pool.dcs("map", "--new", *command, cwd=folder, check=False).returncode == 1
    assert sorted(name for name in os.listdir(os.path.join(folder, "found")) if name[0] != ".") == ["1.out"]


def waits_for_a_host(pool, folder):
    pool.dcs("host", "drain", *pool.host_names())
    with pool.start([DCS, "map", "--progress", "plain", "--", "echo", ":::", "1"], cwd=folder, stdout=subprocess.DEVNULL,
                    stderr=subprocess.PIPE) as running:
        for line in running.stderr:
            if b"waits for a host" in line or b"no host can take it" in line:
                break
        else:
            raise AssertionError("it does not say what its grain waits for")
        pool.dcs("host", "undrain", *pool.host_names())
        running.communicate(timeout=120)
    assert running.returncode == 0


def mended_files(pool, folder):
    """A failed grain whose --input or --file was mended runs alone, with it; one that still runs keeps what it was submitted with."""
    for option, words in ((("--input", "in.{}"), ["sh", "-c", "echo {} >>mended-ran; ! grep bad"]),
                          (("--file", "x=in.{}"), ["sh", "-c", f"echo {{}} >>{folder}/mended-ran; ! grep bad x"])):
        for item, text in (("a", "good"), ("b", "good"), ("c", "bad")):
            write(folder, "in." + item, text + "\n")
        write(folder, "mended-ran")
        line = ("map", *option, "--", *words, ":::", "a", "b", "c")
        assert pool.dcs(*line, cwd=folder, check=False).returncode == 1
        write(folder, "in.c", "well\n")
        done = pool.dcs(*line, cwd=folder)
        assert tells(done.stderr, "1 of 3 grains failed runs again") and sorted(read_text(os.path.join(folder, "mended-ran")).split()) == list("abcc"), done
        write(folder, "in.a", "other\n")  # after its grain had succeeded
        assert tells(pool.dcs(*line, cwd=folder).stderr, "is complete: all run again")
    write(folder, "in.a", "first\n")
    line = ("map", "--input", "in.{}", "--", "sh", "-c", "until test -e mended-go; do sleep 0.05; done; cat", "sh", ":::", "a")
    with pool.start([DCS, *line], cwd=folder, stderr=subprocess.PIPE) as running:
        assert tells(running.stderr.readline(), "1 grain")
        wait_for("its grain", lambda: pool.json("session", "show", "last")["session"]["running"] == 1)
        running.kill()
    write(folder, "in.a", "second\n")
    with pool.start([DCS, *line], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        for told in running.stderr:
            if tells(told, "warning file of grain changed since submitted it keeps"):
                break
        write(folder, "mended-go")
        assert running.communicate(timeout=300)[0] == b"first\n" and running.returncode == 0


def in_another_directory(pool, folder):
    """--cwd is for CMD, its words and inputs; what --input brings is named from the current directory, and compared there."""
    os.mkdir(os.path.join(folder, "below"))
    for name in "below/word", "table", "tab.word", "tab.lack", "below/table", "below/tab.word":
        write(folder, name, "old\n")
    for path, other in ("table", "below/table"), ("tab.{}", "below/tab.word"):
        line = ["map", "--cwd", "below", "--input", path, "--", "sh", "-c", 'cat "$1" - && ls word', "sh", "{}", ":::", "word", "lack"]
        assert pool.dcs(*line, cwd=folder, check=False).stdout == b"old\nold\nword\nold\n"
        write(folder, other, "other\n")
        done = pool.dcs(*line, cwd=folder, check=False)
        assert tells(done.stderr, "1 of 2 grains failed in the last run and runs again"), done
        write(folder, path.replace("{}", "word"), "new\n")
        done = pool.dcs(*line, cwd=folder, check=False)
        assert tells(done.stderr, path.replace("{}", "word") + " has changed since all run") and done.stdout.startswith(b"old\nnew\n"), done


def above_a_pool(pool):
    done = pool.dcs("--dir", os.path.dirname(pool.base), "status", check=False)
    assert b"was removed" not in done.stderr + done.stdout, done


def main():
    with Pool(servers=1, slots=2) as pool:
        folder = os.path.join(pool.base, "work")
        os.mkdir(folder)
        for part in (several_files, results_of_others, killed, interrupted, changed_input, changed_meanwhile, repaired_input, submitted, without_output, how_they_ended, no_reader, slow_reader, full_disk, closed_input, places,
                     log_of_another, no_result, waits_for_a_host, mended_files, in_another_directory):
            part(pool, folder)
        above_a_pool(pool)
    print("20 passed, 0 failed")


if __name__ == "__main__":
    main()
