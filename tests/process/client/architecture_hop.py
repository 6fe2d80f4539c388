#!/usr/bin/python3
"""A grain goes on in mid-run on another kind of machine and comes back: compiled for x86-64 and for aarch64, whose host
runs it through an emulator. One grain begins on either; output equals an undisturbed run, byte for byte."""
import glob
import json
import os
import platform
import pwd
import random
import shutil
import signal
import subprocess
import sys

from pool import BIN, ROOT, Pool, start_time, wait_for

CROSS, EMULATOR = "aarch64-linux-gnu-gcc", "/usr/bin/qemu-aarch64-static"
GEXEC = os.path.join(os.path.dirname(BIN), "tests", "gexec")
MACHINES = {"local1": "x86_64-linux-gnu", "local2": "aarch64-linux-gnu"}
EM_X86_64, EM_AARCH64 = 62, 183


def compile_for(pool, host, compiler):
    """Into the user's DCS home on that host, under the name that it has on all of them."""
    home = os.path.join(pool.dir, "servers", host, "home", pwd.getpwuid(os.geteuid()).pw_name)
    os.makedirs(home, exist_ok=True)
    # Fused multiply-add, where a machine has it, rounds once instead of twice: an undisturbed run on it would differ too.
    subprocess.run([compiler, "-std=c11", "-D_GNU_SOURCE", "-O2", "-static", "-ffp-contract=off",
                    "-I", os.path.join(ROOT, "libdcs/include"), os.path.join(ROOT, "tests/process/client/hop.c"),
                    *glob.glob(os.path.join(ROOT, "libdcs/grain/*.c")), "-o", os.path.join(home, "hop")], check=True)
    machine = int.from_bytes(open(os.path.join(home, "hop"), "rb").read(20)[18:20], "little")
    assert machine == (EM_AARCH64 if compiler == CROSS else EM_X86_64), f"{compiler} made machine {machine}"
    return os.path.join(home, "hop")


def serve_aarch64(pool, host):
    """The server of `host` again, as one whose programs are of another architecture."""
    pid = pool.pid("grainserver", host)
    words = open(f"/proc/{pid}/cmdline").read().split("\0")[:-1]
    os.kill(pid, signal.SIGKILL)
    wait_for("the end of the server", lambda: start_time(pid) is None)
    drop = words.index("--ready-fd") if "--ready-fd" in words else None
    if drop is not None:
        del words[drop:drop + 2]
    words += ["--binary-class", MACHINES[host], "--runner", EMULATOR + " -0 {name}"]
    subprocess.Popen([os.path.join(BIN, "dcs_grainserver"), *words[1:]], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                     stderr=open(os.path.join(pool.base, "server.err"), "w"), start_new_session=True)
    wait_for("the new server", lambda: pool.json("host", "show", host)["host"]["binary_class"] == MACHINES[host])
    pool.dcs("host", "set", host, "--class", "0x2")


def row(pool, session):
    result = pool.dcs("grain", "show", f"{session}:1", "-o", "json", check=False)  # nothing before it is submitted
    return json.loads(result.stdout)["grain"] if result.returncode == 0 else {"state": "", "message": ""}


class Hopper:
    def __init__(self, pool, session, gate, text):
        self.pool, self.session = pool, session
        path = os.path.join(pool.base, f"input{session}")
        with open(path, "w") as file:
            file.write(text)
        self.out = os.path.join(pool.base, f"output{session}")
        self.process = pool.start([GEXEC, "hop", str(session), "0x3", "hop", gate], stdin=open(path), stdout=open(self.out, "w"))
        self.hosts = []

    def seen_on(self, host):
        """It runs there by a program of that machine, and its checkpoint is of that run."""
        def there():
            grain = row(self.pool, self.session)
            return grain if grain["state"] == "running" and grain["host"] == host else None
        incarnation = wait_for(f"session {self.session} on {host}", there, timeout=300)["incarnation"]
        lines = self.line()

        def progressed():
            grain = there()
            return grain and grain["incarnation"] == incarnation and (self.line() > lines or lines >= 200)
        wait_for(f"a checkpoint of session {self.session} on {host}", progressed, timeout=300)
        entry = [e for e in self.pool.grain_processes(host) if f",{self.session},1," in e[1]]
        if entry:
            exe = f"/proc/{entry[0][2]}/exe"

            def executed():  # the file that names it exists just before its exec
                name = os.path.basename(os.readlink(exe))
                return name if name != "dcs_launcher" else None
            program = wait_for("the exec of the grain", executed)
            assert program == ("qemu-aarch64-static" if MACHINES[host].startswith("aarch64") else "hop"), program
            self.hosts.append(host)

    def line(self):
        message = row(self.pool, self.session)["message"]
        return int(message.split()[1]) if message else 0


def main():
    if platform.machine() != "x86_64" or not shutil.which(CROSS) or not os.path.exists(EMULATOR):
        print(f"skipped: needs x86-64, {CROSS} and {EMULATOR} (deploy/install-packages --tests)")
        sys.exit(77)
    rng = random.Random(1)
    numbers = [f"{3.6 + 0.4 * rng.random():.15f} \u00e9\n" for _ in range(400)]
    texts = ["".join(numbers[:200]) + "wait\n" + "".join(numbers[200:]), "wait\n".join(["".join(numbers[100:300]), numbers[7]])]
    hoppers = []
    try:
        hop_about(texts, hoppers)
    finally:
        for hopper in hoppers:
            hopper.process.kill()
    print("1 passed, 0 failed")


def hop_about(texts, hoppers):
    with Pool(2, 2, 1.0) as pool:
        native = compile_for(pool, "local1", "gcc")
        foreign = compile_for(pool, "local2", CROSS)
        serve_aarch64(pool, "local2")
        gate = os.path.join(pool.base, "gate")
        first = Hopper(pool, 1, gate, texts[0])
        hoppers.append(first)
        first.seen_on("local1")
        pool.dcs("host", "drain", "--evict", "local1")
        second = Hopper(pool, 2, gate, texts[1])
        hoppers.append(second)
        for closed, host in ((None, "local2"), ("local2", "local1"), ("local1", "local2")):
            if closed:
                pool.dcs("host", "undrain", host)
                pool.dcs("host", "drain", "--evict", closed)
            for hopper in (first, second):
                hopper.seen_on(host)
        pool.dcs("host", "undrain", "local1")
        open(gate, "w").close()
        for hopper, text in ((first, texts[0]), (second, texts[1])):
            assert hopper.process.wait(timeout=300) == 0, f"session {hopper.session}: exit {hopper.process.returncode}"
            assert [m["reason"] for m in row(pool, hopper.session)["moves"]].count("host_closed") >= 2
            assert {"local1", "local2"} <= set(hopper.hosts), hopper.hosts
            got = open(hopper.out).read()
            for command in ([native, gate], [EMULATOR, foreign, gate]):
                wanted = subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout.decode()
                assert got == wanted, f"{command[0]}: differs after {len(os.path.commonprefix([got, wanted]))} bytes"
            print(f"session {hopper.session}: {' -> '.join(hopper.hosts)}, {len(got)} bytes equal on both machines")


if __name__ == "__main__":
    main()
