#!/usr/bin/python3
"""dcs completion: every verb and option is offered where it can stand, names come from the pool, a scheduler that
does not answer keeps no party waiting; bash itself completes by it, and zsh and fish where they are installed."""
import os
import re
import shutil
import signal
import subprocess

from pool import BIN, Pool, wait_for


def offered(pool, *words):
    """Asked again where this machine was too busy to answer in the time that a person waits."""
    def answer():
        result = pool.dcs("__complete", *words, check=False)
        assert result.returncode in (0, -signal.SIGALRM), result
        return result if result.returncode == 0 else None
    return wait_for("an answer in time", answer, timeout=300).stdout.decode().split("\n")[:-1]


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
        def ended():  # on a busy machine its alarm may even come before that
            result = pool.dcs("__complete", "session", "show", "", check=False)
            assert result.returncode == -signal.SIGALRM, result
            return result.stdout == b"all\ndone\nlast\n"
        wait_for("what needs no answer", ended, timeout=300)
    finally:
        os.kill(pid, signal.SIGCONT)


def shells(pool):
    env = dict(pool.env, PATH=BIN + ":" + pool.env["PATH"])

    def run(*command, wanted=None):
        def done():
            result = subprocess.run(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)
            return result if wanted is None or (result.stdout.split() == wanted and not result.stderr) else None
        return wait_for(f"{wanted} of {command[0]}", done, timeout=300)
    script = ("source <(dcs completion bash); COMP_WORDS=(dcs host drain loc); COMP_CWORD=3; $(complete -p dcs | "
              "sed 's/.*-F \\([^ ]*\\).*/\\1/'); echo \"${COMPREPLY[@]}\"")
    assert run("bash", "--norc", "-c", script, wanted=[b"local1", b"local2"]).stdout == b"local1 local2\n"
    tried = ["bash"]
    if shutil.which("fish"):
        run("fish", "--no-config", "-c", "dcs completion fish | source; complete -C 'dcs host drain loc'", wanted=[b"local1", b"local2"])
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
