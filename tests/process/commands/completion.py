#!/usr/bin/python3
"""dcs completion: every verb and option is offered where it can stand, names come from the pool, a scheduler that
does not answer keeps no party waiting; bash itself completes by it, and zsh and fish where they are installed."""
import os
import re
import shutil
import signal
import subprocess

from pool import BIN, Pool


def offered(pool, *words):
    return pool.dcs("__complete", *words).stdout.decode().split("\n")[:-1]


def verbs_of_help(pool):
    lines = pool.dcs("--help").stdout.decode().split("Usage:")[1].split("\n")
    rows = [re.match(r"  ([a-z-]+(?: [a-z]+)?)  +[a-z]", line) for line in lines]
    return [row.group(1).split(" ") for row in rows if row]


def everything_is_offered(pool):
    verbs = verbs_of_help(pool)
    assert len(verbs) > 30, verbs
    for words in verbs:
        assert words[0] in offered(pool, ""), words
        if len(words) == 2:
            assert words[1] in offered(pool, words[0], ""), words
        usage = pool.dcs(*words, "--help").stdout.decode()
        options = re.findall(r"(?<![\w-])--[a-z-]+", usage.split("Usage:")[1].split("\n\n")[0])
        for option in options:
            assert option in offered(pool, *words, "--"), (words, option, offered(pool, *words, "--"))
    assert offered(pool, "session", "wa") == ["wait", "watch"]
    assert offered(pool, "nonsense", "") == [] and offered(pool, "up", "x") == []
    assert offered(pool, "session", "ls", "-o", "") == ["json", "name", "table"]
    assert offered(pool, "up", "--courtesy", "") == ["none", "priority", "watch"] and offered(pool, "up", "--local", "") == []
    assert offered(pool, "run", "--output", "") == [] and offered(pool, "run", "-o", "j") == ["json"]


def names_of_the_pool(pool):
    assert "1" in offered(pool, "session", "show", "") and "last" in offered(pool, "session", "show", "")
    assert "1:" in offered(pool, "grain", "cat", "")
    assert offered(pool, "host", "drain", "loc") == ["local1", "local2"]
    assert offered(pool, "run", "--", "") == [] and offered(pool, "run", "ls", "") == []
    pid = pool.pid("scheduler", "scheduler")
    os.kill(pid, signal.SIGSTOP)
    try:  # ended by its own alarm, after what needs no answer
        result = pool.dcs("__complete", "session", "show", "", check=False)
        assert result.returncode == -signal.SIGALRM and result.stdout == b"all\ndone\nlast\n", result
    finally:
        os.kill(pid, signal.SIGCONT)


def shells(pool):
    env = dict(pool.env, PATH=BIN + ":" + pool.env["PATH"])

    def run(*command):
        return subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
    script = ("source <(dcs completion bash); COMP_WORDS=(dcs host drain loc); COMP_CWORD=3; $(complete -p dcs | "
              "sed 's/.*-F \\([^ ]*\\).*/\\1/'); echo \"${COMPREPLY[@]}\"")
    result = run("bash", "--norc", "-c", script)
    assert result.stdout == b"local1 local2\n" and not result.stderr, result
    tried = ["bash"]
    if shutil.which("fish"):
        result = run("fish", "--no-config", "-c", "dcs completion fish | source; complete -C 'dcs host drain loc'")
        assert result.stdout.split() == [b"local1", b"local2"], result
        tried.append("fish")
    if shutil.which("zsh"):
        result = run("zsh", "-f", "-c", "dcs completion zsh >/dev/null && zsh -n =(dcs completion zsh)")
        assert result.returncode == 0, result
        tried.append("zsh")
    assert pool.dcs("completion", "tcsh", check=False).returncode == 2
    return tried


def main():
    with Pool(2, 1, 1.0) as pool:
        pool.dcs("map", "--session", "1", "--", "echo", ":::", "a", "b")
        everything_is_offered(pool)
        names_of_the_pool(pool)
        tried = shells(pool)
    print(f"1 passed, 0 failed ({', '.join(tried)})")


if __name__ == "__main__":
    main()
