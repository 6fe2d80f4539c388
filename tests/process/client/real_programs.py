#!/usr/bin/python3
"""Programs of others as grains, unmodified: what they print through `dcs run` and through d_gexec is what they print
by hand. And what cannot be run says why, wherever one looks."""
import json
import os
import subprocess

from pool import BIN, Pool, tells

GEXEC = os.path.join(os.path.dirname(BIN), "tests", "gexec")
SCRIPT = "#!/bin/sh\n# counts words, in a loop of its own\nn=0\nwhile read -r a b; do n=$((n + 1)); echo \"$n $b\" >&2; done\n" \
         "echo \"$# arguments, $n lines\"\nexit 3\n"
TEXT = "".join(f"{(i * 7919) % 1009} word{i} \u00fc\n" for i in range(5000))

PROGRAMS = (
    # 2^103-1: sigma and bounds given, so that every run finds the same
    ("ecm", ["/usr/bin/ecm", "-q", "-sigma", "7", "2000"], "10141204801825835211973625643007\n"),
    ("gp", ["/usr/bin/gp", "-q", "-f"], "print(factor(2^101-1))\nfor(k=1,5,print(nextprime(10^(20*k))))\n"),
    ("sort", ["/usr/bin/sort", "-n"], TEXT),
    ("python3", ["/usr/bin/python3", "-c", "import sys\nprint(sum(map(len, sys.stdin)), file=sys.stderr)\nsys.exit(7)"], TEXT),
    ("script", ["{base}/script", "two words", "*"], TEXT),
    ("sh", ["/bin/sh", "-c", "cat; kill -11 $$"], "before the end\n"),
    ("nothing", ["/bin/cat"], ""),
)


def run(command, text, env, cwd):
    done = subprocess.run(command, input=text.encode(), capture_output=True, env=env, cwd=cwd, timeout=120)
    return done.returncode if done.returncode >= 0 else 128 - done.returncode, done.stdout, done.stderr


def unmodified(pool):
    for number, (name, command, text) in enumerate(PROGRAMS, 1):
        command = [word.format(base=pool.base) if word.startswith("{") else word for word in command]
        env = dict(pool.env, LC_ALL="C.UTF-8")
        quiet = run(command, text, env, pool.base)
        assert name == "nothing" or quiet[1] or quiet[2], f"{name} prints nothing by hand: {quiet}"
        ran = run([os.path.join(BIN, "dcs"), "run", "--", *command], text, env, pool.base)
        by_run = quiet
        if quiet[0] == 139:  # as a shell would, dcs run says so
            by_run = quiet[0], quiet[1], quiet[2] + b"dcs run: the command was ended by signal 11 (Segmentation fault)\n"
        assert ran == by_run, f"{name} by dcs run: {ran} instead of {by_run}"
        called = run([GEXEC, "real", str(number), "0", *command], text, env, pool.base)
        assert called == quiet, f"{name} by d_gexec: {called} instead of {quiet}"
        print(f"{name}: exit {quiet[0]}, {len(quiet[1])} + {len(quiet[2])} bytes, the same in all ways")


def odd_files(base):
    """Each asker has files of its own. Path and what is wrong with it; 127: dcs run knows by itself that there is no such program."""
    def make(name, text, mode=0o755):
        path = os.path.join(base, name)
        with open(path, "wb") as file:
            file.write(text)
        os.chmod(path, mode)
        return path

    true = open("/bin/true", "rb").read()
    os.mkdir(base)
    make("script", b"#!/bin/sh\n")
    os.mkdir(os.path.join(base, "directory"))
    os.symlink("nowhere", os.path.join(base, "dangling"))
    return (
        (os.path.join(base, "missing"), 127, "No such file or directory"),
        (os.path.join(base, "dangling"), 127, "No such file or directory"),
        (os.path.join(base, "script", "below"), 127, "Not a directory"),
        (os.path.join(base, "directory"), 126, "is a directory"),
        (make("not-executable", b"#!/bin/sh\n", 0o644), 126, "is not executable"),
        (make("no-interpreter", b"#!/nowhere/sh\necho hello\n"), 126, "but its interpreter or loader does not"),
        (make("carriage-return", b"#!/bin/sh\r\necho hello\r\n"), 126, "has lines that end in CR LF"),
        (make("no-first-line", b"echo hello\n"), 126, "nor a script with a #! line"),
        (make("empty", b""), 126, "nor a script with a #! line"),
        # The machine's number in its header is that of another one.
        (make("other-machine", true[:18] + (183).to_bytes(2, "little") + true[20:]), 126, "neither a program of this kind of machine"),
    )


def told(pool):
    env = dict(pool.env, LC_ALL="C.UTF-8")
    for path, code, words in odd_files(os.path.join(pool.base, "run")):
        exit_code, out, err = run([os.path.join(BIN, "dcs"), "run", "--", path, "x"], "", env, pool.base)
        assert (exit_code, out) == (code, b""), f"dcs run {path}: exit {exit_code}, {out}, {err}"
        assert path.encode() in err, f"dcs run {path} does not name it: {err}"
        if code == 126:
            assert words.encode() in err or tells(err, "not executable file"), f"dcs run {path}: {err}"
    bare = ("echo", 127, "a program without a path is looked for in the DCS home, not in PATH")
    for number, (path, _, words) in enumerate([*odd_files(os.path.join(pool.base, "call")), bare], 101):
        exit_code, out, err = run([GEXEC, "real", str(number), "0", path, "x"], "", env, pool.base)
        assert exit_code == 125 and b"d_gwait: " in err and tells(err, "host can run remaining"), f"d_gexec {path}: {exit_code}, {err}"
        selector = f"{number}:1"
        explained = pool.json("grain", "explain", selector)
        assert not explained["can_run"] and len(explained["failed_starts"]) == 2, explained
        for what in (*explained["failed_starts"], pool.dcs("grain", "explain", selector).stdout.decode(),
                     pool.dcs("grain", "show", selector).stdout.decode()):
            assert path in what and words in what, f"{path}: {words!r} is not in {what}"
        moves = pool.json("grain", "show", selector)["grain"]["moves"]
        assert [m["reason"] for m in moves] == ["no_program"] * 2 and all(words in m["detail"] for m in moves), moves
    # Of no use to any party: neither a result nor an attempt was counted.
    rows = [pool.json("grain", "show", f"{n}:1")["grain"] for n in range(101, 112)]
    assert all(row["failures"] == 0 and row["state"] == "ready" for row in rows), rows
    os.rename(os.path.join(pool.base, "run", "empty"), os.path.join(pool.base, "run", "empty-2"))
    told_as_json = pool.dcs("run", "-o", "json", "--", os.path.join(pool.base, "run", "empty-2"), check=False)
    error = json.loads(told_as_json.stderr)["error"]
    assert error["code"] == "cannot_run" and "#! line" in error["message"], error


def main():
    with Pool(2, 2, 1.0) as pool:
        path = os.path.join(pool.base, "script")
        with open(path, "w") as file:
            file.write(SCRIPT)
        os.chmod(path, 0o755)
        unmodified(pool)
        told(pool)
    print("2 passed, 0 failed")


if __name__ == "__main__":
    main()
