#!/usr/bin/python3
"""Names that are exchanged for links, other people's files, FIFOs and other folders while daemons open what lies under
them: nothing of root's is read, changed or removed, and no peer hangs. First the grain server's own functions, alone and very
often; then whole daemons, with grains that do it to their rooms while reports, outputs and removals go on; then the
functions with bugs in them, to see that a race that is won is noticed."""
import os
import shutil
import subprocess
import tempfile
import threading
import time

from hurry import Hurry
from pool import FULL, grain_directories, wait_for
from users_host import UsersHost, need_root, tool

COUNT = 100_000 if FULL else 1_500
ROUNDS = 200 if FULL else 6
SECRET = "only root may know 7f3a"
PLANTS = {"files.room.follow": "name", "files.remove.follow": "removal", "files.program.as_root": "program"}

# Of a grain: it makes its files, then exchanges them as fast as it can for as long as asked. The names are those that the
# server opens: increments, checkpoints, the announcement, outputs, and folders on the way.
ATTACK = r"""
import ctypes, os, random, sys, time
secret, victim, seconds = sys.argv[1], sys.argv[2], float(sys.argv[3])
call = ctypes.CDLL(None).renameat2
def exchange(a, b): call(-100, a.encode(), -100, b.encode(), 2)
room = os.environ["DCS_GRAIN_DIR"]
os.chdir(os.path.join(room, "work"))
for i in range(4):
    os.symlink(secret, f"link{i}"); os.mkfifo(f"fifo{i}"); os.symlink(victim, f"folder{i}")
    try: os.link(secret, f"name{i}")
    except OSError: pass
os.makedirs("d/e"); open("d/e/out", "w").write("mine"); open("out", "w").write("mine")
open(os.path.join(room, "announce"), "w").close()
names = ["out", "d/e/out", "../announce"] + [f"../{stem}.{n}" for stem in ("out", "err", "checkpoint") for n in (1, 2, 3)]
evils = [f"{kind}{i}" for kind in ("link", "fifo", "name") for i in range(4)]
end, number = time.monotonic() + seconds, 0
print("begun", flush=True)
while time.monotonic() < end:
    for _ in range(200):
        exchange(random.choice(names), random.choice(evils))
        exchange(random.choice(["d", "d/e"]), f"folder{random.randrange(4)}")
    number += 1
    try: open(f"../checkpoint.{number % 3 + 1}", "x").write("checkpoint")
    except OSError: pass
    print("line", number, flush=True)
"""


def functions():
    base = tempfile.mkdtemp(prefix="dcs-races-", dir="/var/lib")
    try:
        result = subprocess.run([tool("file_racer"), base, str(COUNT)], capture_output=True, text=True, timeout=36000)
        print(result.stdout, end="", flush=True)
        assert result.returncode == 0, result.stdout + result.stderr
        lines = dict(line.split(": ", 1) for line in result.stdout.splitlines())
        assert len(lines) == 5, lines
        for name in ("name", "folder", "program"):  # else nothing was raced
            assert " 0 refused" not in lines[name], lines
    finally:
        shutil.rmtree(base, ignore_errors=True)


def bugs_are_noticed():
    for plant, race in PLANTS.items():
        base = tempfile.mkdtemp(prefix="dcs-races-", dir="/var/lib")
        try:
            result = subprocess.run([tool("file_racer"), base, "1000000", race], capture_output=True, text=True, timeout=36000,
                                    env=dict(os.environ, DCS_PLANTED=plant))
            assert result.returncode == 1 and " 0 won" not in result.stdout, (plant, result.stdout, result.stderr)
            print(f"{plant}: noticed", flush=True)
        finally:
            shutil.rmtree(base, ignore_errors=True)


class Victim:
    def __init__(self, base):
        self.secret, self.folder = os.path.join(base, "secret"), os.path.join(base, "victim")
        os.mkdir(self.folder)
        os.makedirs(os.path.join(self.folder, "e"))
        for path in (self.secret, *(os.path.join(self.folder, name) for name in ("out", "keep", "e/out"))):
            with open(path, "w") as file:
                file.write(SECRET)
            os.chmod(path, 0o600)
        self.before = self.state()

    def state(self):
        found = {}
        for path in (self.secret, self.folder, *(os.path.join(top, name) for top, folders, files in os.walk(self.folder)
                                                  for name in folders + files)):
            st = os.stat(path)
            found[path] = (st.st_mode, st.st_uid, st.st_gid, st.st_size, st.st_mtime_ns)
        return found

    def check(self):
        assert self.state() == self.before, (self.before, self.state())


def whole_daemons():
    with UsersHost() as host, Hurry(host):
        victim = Victim(host.base)
        script = os.path.join(host.tools, "attack.py")
        open(script, "w").write(ATTACK)
        def race(words):
            back = [os.path.join(host.base, f"back-{threading.get_ident()}-{name}") for name in ("a", "b")]
            result = host.run("/usr/bin/python3", script, victim.secret, victim.folder, "3", check=False,
                              options=("--output", f"out={back[0]}", "--output", f"d/e/out={back[1]}"))
            seen = result.stdout + result.stderr
            for path in back:
                if os.path.exists(path):
                    seen += open(path, "rb").read()
                    os.unlink(path)
            words.append(seen)
        for _ in range(ROUNDS):
            said = []
            threads = [threading.Thread(target=race, args=(said,)) for _ in range(3)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert len(said) == 3 and not any(SECRET.encode() in text for text in said), said
            victim.check()
            assert host.server.poll() is None and host.scheduler.poll() is None and host.launcher()
        # What they left goes, and nothing else; and the host still works.
        wait_for("the grains' directories to go", lambda: not grain_directories(host.server_dir))
        victim.check()
        assert host.run("/bin/echo", "fine").stdout == b"fine\n"
        for name in ("scheduler.log", "server.log", "h1/launcher.log"):
            assert SECRET not in host.text(name), name
    print(f"{ROUNDS * 3} grains raced daemons in vain", flush=True)


def main():
    need_root("to have files that others may not read")
    for part in (functions, bugs_are_noticed, whole_daemons):
        began = time.monotonic()
        part()
        print(f"{part.__name__}: {time.monotonic() - began:.1f} s", flush=True)


if __name__ == "__main__":
    main()
