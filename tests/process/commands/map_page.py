#!/usr/bin/python3
"""docs/MAP.md: every block of it, in its order; and what a page does not show: the log's other columns, a rerun of a finished
map, inputs and outputs of many bytes and lines."""
import os
import re
import subprocess

from pool import FULL, ROOT, Pool, program, tells, wait_for


def page(pool, directory):
    text = open(os.path.join(ROOT, "docs/MAP.md")).read()
    blocks = re.findall(r"```run\n(.*?)```\n\n```output\n(.*?)```", text, re.S)
    assert len(blocks) == text.count("```run") >= 4
    for commands, wanted in blocks:
        result = subprocess.run(["/bin/sh", "-c", commands], cwd=directory, env=pool.env, capture_output=True, timeout=300)
        assert result.stdout.decode() == wanted, (commands, result.stdout.decode(), result.stderr.decode())


def unstartable_are_told_once(pool, directory):
    """Their directory is gone when there are slots."""
    gone = os.path.join(directory, "gone")
    os.mkdir(gone)
    pool.dcs("host", "drain", *pool.host_names())
    with pool.start([program("dcs"), "map", "--", "echo", ":::", "1", "2", "3"], cwd=gone, stderr=subprocess.PIPE) as running:
        wait_for("the grains", lambda: sum(s["ready"] for s in pool.json("session", "ls")["sessions"]) == 3)
        os.rmdir(gone)
        pool.dcs("host", "undrain", *pool.host_names())
        said = running.communicate(timeout=120)[1]
    assert running.returncode == 3 and said.count(b"was given up") == 1, said


def columns(pool, directory):
    """Where and when, and a replay of the finished map says the same of each grain."""
    command = ["map", "--joblog", "columns", "--", "sh", "-c", "printf 12345; kill -$1 $$", "sh", "{}", ":::", "0", "9", "it's\n0"]
    assert pool.dcs(*command, check=False, cwd=directory).returncode == 2
    first = sorted(open(os.path.join(directory, "columns")).read().splitlines()[1:])
    assert len(first) == 3, first
    for seq, line in enumerate(first, 1):
        number, host, start, runtime, send, receive, code, sig, words = line.split("\t")
        assert int(number) == seq and host in pool.host_names() and float(start) > 1e9 and float(runtime) >= 0, line
        assert send == "0" and int(receive) == 5, line
        assert (int(code) != 0, int(sig)) == ((False, 0), (False, 9), (True, 0))[seq - 1], line
    assert first[2].endswith("sh $'it\\'s\\n0'"), first[2]
    assert pool.dcs("map", "--replay", *command[1:], check=False, cwd=directory).returncode == 2
    assert sorted(open(os.path.join(directory, "columns")).read().splitlines()[1:]) == first
    missing = pool.dcs("map", "--joblog", "no/such/file", "--", "true", ":::", "1", check=False, cwd=directory)
    assert missing.returncode == 255 and b"no/such/file" in missing.stderr, missing.stderr


def beside_parallel(pool, directory):
    """The same words for GNU parallel and for a map."""
    with open(os.path.join(directory, "two"), "w") as file:
        file.write("1\n2\n")
    for line in ("-k --tag --colsep , -- echo {2} {1/} {} ::: x/y,1 z,2", "-k -- echo ::: a b :::+ 1 2 3", "-k -P2 -- echo {1}-{2}{#} ::: a b ::: 1 2",
                 "-k --retries 2 -- echo {} {-1} {1.} ::: q.x r :::: two two", "-k --tag -- echo hi {#} ::: a b ::: c",
                 "-k --timeout 100 -- echo {1} {2} ::: 1 2 :::+ a b ::: x y", "-k --colsep \\t -a two --wd /tmp -- echo x{1}y{2}z",
                 "-k -n 3 --tag -- echo a {} b{}c {1} ::: 1 2 3 4 5 6 7", "-k -n2 -- echo ::: a b c ::: x", "-k -n 2 -a two -- echo {2}{1}{#}",
                 "-k -n 2 --colsep , -- echo {1}-{2/}-{3}-{4} ::: a,1 b,2 c,3", "-k -n 2 --colsep , -- echo {} ::: a,1 b,2 c,3", "-k -n2 --colsep , -- echo {#} ::: a,1 b,2",
                 "-k --colsep , -- printf [%s] ::: ,f, x,, , z", "-k -n 2 -- printf [%s] {1} {2} ::: 1 2 3", "-k -- echo {//} ::: p/ a/b/"):
        words = [word.replace("\\\\", "\\") for word in line.split(" ")]
        ours = pool.dcs("map", *words, cwd=directory)
        if os.path.exists("/usr/bin/env_parallel"):  # GNU parallel; moreutils has a program of the same name
            theirs = subprocess.run(["/usr/bin/parallel", "--will-cite", *[word for word in words if word != "--"]], cwd=directory, timeout=300,
                                    env=dict(pool.env, HOME=directory), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
            assert ours.stdout == theirs.stdout, (line, ours, theirs)
    for option, wanted in (("--header", "tail -n +2 FILE"), ("--shuf", "shuf FILE"), ("-I@", "{}"), ("-L2", "-n N of `dcs map`"),
                           ("--delimiter", "tr ,"), ("-u", "in the order of the inputs"), ("-r", "nothing runs"),
                           ("--gres=gpu:1", "--resource gpu=1"), ("--wait", "--detach"), ("--tmpdir", "--results DIR"), ("-j0", "without --jobs"), ("-P+1", "all free slots"),
                           ("-j100%", "dcs host ls")):
        refused = pool.dcs("map", option, "--", "echo", ":::", "1", check=False, cwd=directory)
        assert refused.returncode == 255 and wanted in refused.stderr.decode().split("hint: ")[1], refused
    for words, wanted in ((["--colsep", "(", "--", "echo", ":::", "1"], "--colsep"), (["--", "echo", ":::+", "1"], ":::+"),
                          (["--halt", "now,fail=1", "--", "echo", ":::", "1"], "--halt"), (["--", "echo", "::::", "nosuch"], "nosuch"),
                          (["--joblog", ":::", "1"], "--joblog has no value"), (["-j", ":::", "1"], "--jobs has no value")):
        refused = pool.dcs("map", *words, check=False, cwd=directory)
        assert refused.returncode == 255 and wanted.encode() in refused.stderr, refused
    three = ["-n", "2", "--colsep", ",", "--", "echo", "{1}", "{2}", ":::", "a,1", "b,2", "c,3"]
    refused = pool.dcs("map", *three, check=False, cwd=directory)
    assert refused.returncode == 255 and tells(refused.stderr, "-n 2 columns of 2 inputs CMD takes none of input 2"), refused
    assert tells(refused.stderr, "hint {} takes all {3} to {4}"), refused
    for word in "{3}", "{-1}", "{}", "x{4.}":  # of the other input, too
        assert pool.dcs("map", *three[:6], "{1}", word, *three[8:], cwd=directory).stdout.count(b"\n") == 2, word
    for option in "--file", "--input":
        assert b"none of input 2" not in pool.dcs("map", option, "no{3}", *three, check=False, cwd=directory).stderr, option
    for word, wanted in (("{..}", "dcs map replaces {}"), ("x{/..}", "{/..} is passed on"), ("{2}", "one column"), ("{%}", "dcs map replaces")):
        noted = pool.dcs("map", "--new", "--", "echo", word, ":::", "a.b.c", cwd=directory)
        assert noted.stdout.decode() == f"{word} a.b.c\n" and wanted in noted.stderr.decode(), noted


def large(pool, directory):
    count = 100_000 if FULL else 300
    lines = "".join(f"{i}\n" for i in range(count))
    result = pool.dcs("map", "--joblog", "large", "--", "/bin/echo", data=lines.encode(),
                      cwd=directory, timeout=7200)
    assert result.stdout.decode() == lines
    log = open(os.path.join(directory, "large")).read().splitlines()[1:]
    assert sorted(int(line.split("\t")[0]) for line in log) == list(range(1, count + 1))


def main():
    with Pool(servers=2, slots=2) as pool:
        directory = os.path.join(pool.base, "work")
        os.mkdir(directory)
        pool.env["PATH"] = os.path.dirname(program("dcs")) + ":" + pool.env["PATH"]
        page(pool, directory)
        columns(pool, directory)
        unstartable_are_told_once(pool, directory)
        beside_parallel(pool, directory)
        large(pool, directory)
    print("docs/MAP.md says what dcs map does")


if __name__ == "__main__":
    main()
