#!/usr/bin/python3
"""What a person sees who makes a mistake: each file of transcripts/ is a shell session, `$ COMMAND`, then what it writes
and, if it is not 0, its exit code in brackets. Each must come out the same, to the letter.
    transcripts.py [FILE...]           compares
    transcripts.py --write [FILE...]   writes down what comes out now: for reading, not for believing
`# pool` in a file's first line starts a private pool for it; one with `refusing` is left out where libc cannot be
refused anything ($REFUSING is the library that does so, tests/support/refuse.h; programs of sanitizers have none).
@POOL@ and @HERE@ stand for directories of the run, @BIN@ for that of the programs."""
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(os.path.dirname(HERE), "process"))
from pool import BIN, Pool  # noqa: E402

FOLDER = os.path.join(HERE, "transcripts")
REFUSING = os.path.join(os.path.dirname(BIN), "tests", "librefuse.so")
SECONDS = int(os.environ.get("DCS_WORDS_SECONDS", 300))


def commands_of(text):
    """Comment lines and commands, in order; a command's following lines are what it wrote."""
    for line in text.splitlines():
        if line.startswith(("#", "$ ")):
            yield line


def result_of(command, directory, env, names):
    process = subprocess.Popen(["/bin/bash", "-c", command], cwd=directory, env=env, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True)
    try:
        text = process.communicate(timeout=SECONDS)[0].decode(errors="backslashreplace")
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        text = process.communicate()[0].decode(errors="backslashreplace") + f"it did not end within {SECONDS} s\n"
    for value, name in names:
        text = text.replace(value, name)
    text = re.sub(r"\b([Pp]rocess|pid) \d+\b", r"\1 @PID@", text)
    text = re.sub(r"(pid|process) @PID@ \([^)]*\)", r"\1 @PID@ (@COMMAND@)", text)
    text = re.sub(r"\b\d+(\.\d+)? (ms|s|min)\b", "@TIME@", text)
    text = re.sub(r"\b\d{4}-\d\d-\d\dT[\d:.]+Z (\w+)\[\d+\]", r"@WHEN@ \1[@PID@]", text)
    text = re.sub(r"\bgrains:\d+: cannot pack", "grains:@LINE@: cannot pack", text)  # as long as its lines happen to be
    text = re.sub(r"/dcs-replay-\w{6}", "/dcs-replay-@IDENT@", text)
    text = re.sub(r"\bmap-[0-9a-f]{24}(\.[0-9a-f]{24})?(-\w+)?\b", "map-@IDENT@", re.sub(r"\.tmp-\d+", ".tmp-@PID@", text))
    lines = "".join("  " + line + "\n" for line in text.splitlines() if line)
    return lines + (f"[{process.returncode}]\n" if process.returncode else "")


def play(text, directory, pool):
    """The transcript as it comes out now."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("DCS_", "XDG_"))}
    env.update(HOME=directory, LC_ALL="C", PATH=f"{BIN}:/usr/bin:/bin:/usr/sbin:/sbin", DCS_PATIENCE_S="1",
               DCS_LOCK_DIR=os.path.join(directory, "locks"),
               BIN=BIN, REFUSING=REFUSING, LD_LIBRARY_PATH=os.path.join(os.path.dirname(BIN), "lib"))
    names = [(BIN, "@BIN@"), (directory, "@HERE@")]
    if pool:
        env.update(DCS_DIR=pool.dir, DCS_PATIENCE_S="20")
        names.insert(0, (pool.dir, "@POOL@"))
    out = []
    for line in commands_of(text):
        out.append(line + "\n")
        if line.startswith("$ "):
            out.append(result_of(line[2:], directory, env, names))
    return "".join(out)


def run(path, write):
    text = open(path).read()
    if "refusing" in text.split("\n", 1)[0] and not os.path.exists(REFUSING):
        print(f"{os.path.basename(path)} is left out: there is no {REFUSING}")
        return []
    directory = os.path.realpath(tempfile.mkdtemp(prefix="dcs-words-"))
    try:
        if text.startswith("# pool"):
            with Pool(servers=1, slots=1, patient=False) as pool:
                came = play(text, directory, pool)
        else:
            came = play(text, directory, None)
    finally:
        shutil.rmtree(directory, ignore_errors=True)
    if write:
        with open(path, "w") as file:
            file.write(came)
        return []
    wanted, got = text.splitlines(), came.splitlines()
    if wanted == got:
        return []
    import difflib
    return list(difflib.unified_diff(wanted, got, path, "what came", lineterm="", n=2))


def main():
    assert os.access(os.path.join(BIN, "dcs"), os.X_OK), f"there are no programs in {BIN}"
    write = sys.argv[1:2] == ["--write"]
    named = sys.argv[1 + write:]
    paths = [p if os.sep in p else os.path.join(FOLDER, p) for p in named] or \
        sorted(os.path.join(FOLDER, name) for name in os.listdir(FOLDER) if name.endswith(".txt"))
    wrong, count = [], 0
    for path in paths:
        wrong += run(path, write)
        count += open(path).read().count("\n$ ")
    print("\n".join(wrong) if wrong else f"{count} commands say what the transcripts say")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
