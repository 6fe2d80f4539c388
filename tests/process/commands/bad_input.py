#!/usr/bin/python3
"""Bad input: each a clear message, a named error, the right exit code, and nothing lost."""
import os
import subprocess
import sys
import time

from pool import Pool, program, wait_for

TESTS = os.path.join(os.path.dirname(program("dcs")), "../tests")


def expect(result, code, *words):
    text = result.stderr.decode() + result.stdout.decode()
    assert result.returncode == code, f"{result.args}: exit {result.returncode}, not {code}: {text}"
    for word in words:
        assert word in text, f"{result.args}: {word!r} is not in: {text}"


def commands(pool):
    expect(pool.dcs("sesion", "ls", check=False), 2, "session")
    expect(pool.dcs("session", "lss", check=False), 2, "ls")
    expect(pool.dcs("map", "-a", "/nonexistent/file", "--", "cat", check=False), 255, "/nonexistent/file", "No such file")
    expect(pool.dcs("run", "--", "/nonexistent/program", check=False, data=b""), 127, "/nonexistent/program")
    expect(pool.dcs("run", "--", "/etc/passwd", check=False, data=b""), 126, "/etc/passwd")
    expect(pool.dcs("session", "show", "4711", check=False), 3, "4711")
    expect(pool.dcs("grain", "show", "4711:1", check=False), 3, "4711")
    expect(pool.dcs("grain", "cat", "x:y", check=False), 2, "x:y")
    expect(pool.dcs("run", "--", "sh", "-c", "exit 7", check=False, data=b""), 7)
    expect(pool.dcs("run", "--", "sh", "-c", "kill -9 $$", check=False, data=b""), 137)
    for text, word in ((b"12x\n", "line 1"), (b"35\n-3\n", "line 2"), (b"0\n", "line 1")):
        bad = subprocess.run([program("find_factor")], input=text, env=pool.env, capture_output=True)
        expect(bad, 2, word)
    nowhere = dict(pool.env, DCS_DIR="/nonexistent/pool", DCS_PATIENCE_S="1")
    expect(subprocess.run([program("dcs"), "session", "ls"], env=nowhere, capture_output=True), 5, "dcs up")


def missing_grain_binary(pool):
    fill = os.path.join(TESTS, "fill")
    out = subprocess.run([fill, "900", "0", "2", "10", "/nonexistent/grain"], env=pool.env, capture_output=True)
    expect(out, 0, "submitted 2")
    expect(subprocess.run([fill, "900", "wait", "1"], env=pool.env, capture_output=True, timeout=300), 1,
           "D_E_CANNOT_RUN", "could not start it")
    different = subprocess.run([fill, "900", "0", "1", "11", "/nonexistent/grain"], env=pool.env, capture_output=True)
    expect(different, 1, "D_E_GRAIN_DIFFERS", "input")


def second_scheduler(pool):
    second = subprocess.run([program("dcs_scheduler"), "--dir", os.path.join(pool.dir, "scheduler")],
                            capture_output=True, timeout=30)
    expect(second, 4, "locked by", str(pool.pid("scheduler", "scheduler")))
    server = subprocess.run([program("dcs_grainserver"), "--name", "local1", "--dir",
                             os.path.join(pool.dir, "servers/local1"), "--scheduler",
                             os.path.join(pool.dir, "scheduler/server.sock")], capture_output=True, timeout=30)
    expect(server, 4, "locked by", str(pool.pid("grainserver", "local1")))
    assert pool.dcs("run", "--", "echo", "alive", data=b"").stdout == b"alive\n"


def stranger(pool):
    """A server whose name is not in the host table, and bytes that are no frames."""
    process = subprocess.Popen([program("dcs_grainserver"), "--name", "stranger", "--dir", os.path.join(pool.base, "stranger"),
                                "--scheduler", os.path.join(pool.dir, "scheduler/server.sock"), "--run-as", "self"], stderr=subprocess.PIPE)
    time.sleep(1.5)
    process.terminate()
    text = process.communicate(timeout=20)[1].decode()
    assert "stranger" in text and "host table" in text, text
    import socket
    for garbage in (b"GET / HTTP/1.0\r\n\r\n" * 4, b"\xff" * 100, b"DCS1" + b"\0" * 20):
        s = socket.socket(socket.AF_UNIX)
        s.settimeout(20)
        s.connect(os.path.join(pool.dir, "scheduler/user.sock"))
        try:
            s.sendall(garbage)
            while s.recv(4096):
                pass
        except (ConnectionResetError, BrokenPipeError):
            pass
        s.close()
    assert pool.dcs("run", "--", "echo", "alive", data=b"").stdout == b"alive\n"


def full_disk():
    """The whole pool on a small tmpfs: refused by name while full, nothing acknowledged lost, goes on by itself."""
    pool = Pool(1, 1, 1.0)
    os.mkdir(pool.dir, 0o700)
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=48m,mode=700", "tmpfs", pool.dir], capture_output=True)
    if mounted.returncode != 0:
        print("SKIPPED: full disk needs the right to mount a tmpfs:", mounted.stderr.decode().strip())
        return False
    fill = os.path.join(TESTS, "fill")
    try:
        pool.up()
        with open(os.path.join(pool.dir, "ballast"), "wb") as ballast:
            ballast.write(b"\0" * (20 << 20))
        out = subprocess.run([fill, "1", "0", "1000", "200000", "/usr/bin/wc"], env=pool.env, capture_output=True, timeout=120)
        expect(out, 1, "D_E_NO_SPACE")
        accepted = int(out.stdout.split()[1])
        assert 0 < accepted < 1000, out.stdout
        rows = pool.grains(1)
        assert len(rows) == accepted, f"{accepted} were acknowledged, {len(rows)} are there"
        pool.kill("scheduler", "scheduler")
        os.remove(os.path.join(pool.dir, "ballast"))
        pool.up()
        assert len(pool.grains(1)) == accepted
        more = subprocess.run([fill, "1", str(accepted), "5", "1000", "/usr/bin/wc"], env=pool.env, capture_output=True, timeout=120)
        expect(more, 0, "submitted 5")
        done = subprocess.run([fill, "1", "wait", str(accepted + 5)], env=pool.env, capture_output=True, timeout=300)
        expect(done, 0)
        lines = done.stdout.decode().splitlines()
        assert sorted(int(l.split()[1]) for l in lines) == list(range(accepted + 5))
        assert all(l.endswith("signal 0 code 0") for l in lines), lines
    except BaseException:
        pool.show_logs()
        raise
    finally:
        pool.down()
        subprocess.run(["umount", "-l", pool.dir])
        assert not pool.left_over()
    return True


def main():
    with Pool(2, 1, 1.0) as pool:
        for part in (commands, missing_grain_binary, second_scheduler, stranger):
            part(pool)
            print(part.__name__, "ok")
    full = full_disk()
    print("full_disk", "ok" if full else "skipped")
    print(f"{4 + full} passed, 0 failed, {1 - full} skipped")


if __name__ == "__main__":
    main()
