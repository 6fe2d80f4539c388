#!/usr/bin/python3
"""Grains' files on their way to hosts and back, through a real pool: a program that the host does not have, large inputs
and outputs, and grain servers killed while contents come and go."""
import os
import subprocess

from pool import Pool, grain_directories, program, wait_for, tells

MB = int(os.environ.get("DCS_FILES_MB", "100"))
CUT = 4 << 20
STARTED = []


def write(path, data, mode=0o644):
    with open(path, "wb") as file:
        file.write(data)
    os.chmod(path, mode)
    return path


def read(path):
    with open(path, "rb") as file:
        return file.read()


def run(pool, *words, data=None, **options):
    STARTED.append(subprocess.Popen([program("dcs"), "run", *words], env=pool.env, stdout=subprocess.PIPE,
                                    stderr=subprocess.PIPE, stdin=data if data is not None else subprocess.DEVNULL, **options))
    return STARTED[-1]


def finished(process):
    out, err = process.communicate(timeout=300)
    assert process.returncode == 0, (process.returncode, err.decode())
    return out


def on_the_way(pool, *folder):
    """Bytes of contents that are half there."""
    path = os.path.join(pool.dir, *folder, "library", "incoming")
    try:
        return sum(os.stat(os.path.join(path, name)).st_size for name in os.listdir(path))
    except OSError:
        return 0


def kill_when(pool, what, running, condition):
    """False: it was over before."""
    wait_for(what, lambda: condition() or running.poll() is not None, timeout=240, step=0.002)
    if running.poll() is not None:
        return False
    assert pool.kill("grainserver", "local1")
    pool.up()
    return True


def missing_program(pool, top):
    """Its file is gone when the grain's turn comes: what was staged is run, under its own name."""
    go = os.path.join(top, "go")
    blocker = run(pool, "--", "/bin/sh", "-c", f"while [ ! -e {go} ]; do sleep 0.1; done")
    wait_for("the slot to be taken", lambda: pool.grain_processes())
    path = write(os.path.join(top, "vanishing"), b'#!/bin/sh\nbasename "$0"; cat here; [ "$0" -ef "$1" ] || echo elsewhere\n', 0o755)
    running = run(pool, "--bring", "--file", "here=" + write(os.path.join(top, "staged"), b"staged\n"), "--", path, path)
    wait_for("the grain to be queued", lambda: any(g["state"] == "ready" for s in pool.json("session", "ls")["sessions"]
                                                   for g in pool.grains(s["session"])))
    os.unlink(path)
    write(go, b"")
    finished(blocker)
    assert finished(running) == b"vanishing\nstaged\nelsewhere\n"


def large_files(pool, top):
    """Killed while the input comes, and again while an output goes; once more where a busy machine let that moment pass."""
    fetching = putting = False
    for _ in range(20):
        if not (fetching and putting):
            met = large_file(pool, top)
            fetching, putting = fetching or met[0], putting or met[1]
    assert fetching and putting, (fetching, putting)


def large_file(pool, top):
    """Whether both kills met what they were for."""
    data = os.urandom(1 << 20) * MB
    source = write(os.path.join(top, "input"), data)
    grain = "(cat; echo end) > big; head -c 1 big > one; : > zero; ln -s one link; mkdir -p d; wc -c < table > d/e"
    words = []
    for name in ("big", "one", "zero", "d/e"):
        words += ["--output", f"{name}={os.path.join(top, 'back-' + os.path.basename(name))}"]
    with open(source, "rb") as stdin:
        running = run(pool, "--file", "table=" + write(os.path.join(top, "table"), b"t" * 1000), *words, "--", "/bin/sh", "-c",
                      grain, data=stdin)
        fetching = kill_when(pool, "the input to come", running, lambda: on_the_way(pool, "servers", "local1") > CUT)
        putting = kill_when(pool, "an output to go", running,
                            lambda: pool_outputs_kept(pool) and on_the_way(pool, "scheduler", "state") > CUT)
        finished(running)
    assert read(os.path.join(top, "back-big")) == data + b"end\n"  # else the library had it already
    assert read(os.path.join(top, "back-one")) == data[:1]
    assert read(os.path.join(top, "back-zero")) == b""
    assert read(os.path.join(top, "back-e")).strip() == b"1000"
    return fetching, putting


def removed_output(pool):
    """A grain that removes the files of its own output, as one does that empties its directory at its end, has not succeeded."""
    lost = "ended on local1 its output is lost"
    for end, code, words in (('rm "$DCS_GRAIN_DIR"/out.1', 74, lost + " out.1 or err.1 was removed from DCS_GRAIN_DIR"),
                             ('rm -rf "$DCS_GRAIN_DIR"/*', 74, lost), ('rm -rf "$DCS_GRAIN_DIR"', 74, lost + " DCS_GRAIN_DIR removed"),
                             ('cd "$DCS_GRAIN_DIR" && ln out.1 kept', 74, lost + " out.1 2 names"),
                             ('rm "$DCS_GRAIN_DIR"/err.1; exit 3', 3, lost), ("true", 0, ""),
                             ('cd "$DCS_GRAIN_DIR" && >announce && >out.3 && >err.3', 74, lost + " err.3 does not follow out.1"),
                             ('cd "$DCS_GRAIN_DIR" && >announce && echo more >out.2', 74, lost + " out.2 does not follow out.1"),
                             ('cd "$DCS_GRAIN_DIR" && >announce && >out.2', 0, "")):
        done = pool.dcs("run", "--", "sh", "-c", "echo result; " + end, check=False)
        assert done.returncode == code and (tells(done.stderr, words) if words else done.stdout == b"result\n"), (end, done)


def pool_outputs_kept(pool):
    grains = os.path.join(pool.dir, "servers", "local1", "grains")
    return any(os.path.exists(os.path.join(grains, name, "outputs")) for name in os.listdir(grains))


def nothing_left(pool):
    assert not on_the_way(pool, "servers", "local1") and not on_the_way(pool, "scheduler", "state")
    wait_for("the grains' directories to go", lambda: not grain_directories(os.path.join(pool.dir, "servers", "local1")))


def main():
    with Pool(servers=1, interval=1.0) as pool:
        top = os.path.join(pool.base, "files")
        os.mkdir(top)
        missing_program(pool, top)
        large_files(pool, top)
        removed_output(pool)
        nothing_left(pool)
    print(f"files of {MB} MB came and went through killed servers")


if __name__ == "__main__":
    try:
        main()
    finally:
        for process in STARTED:
            if process.poll() is None:
                process.kill()
