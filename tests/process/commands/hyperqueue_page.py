"""docs/HYPERQUEUE.md: every command of DCS in its table, typed in order. Those that serve until they are ended are ended when they
serve; Slurm and PBS are played, a pool of their own has the pilots."""
import os
import re
import signal
import subprocess
import sys

import batch_world
from pool import ROOT, Pool, free_port, wait_for
from terminal import Terminal

STUDY = """[[grain]]
name = "first"
command = ["./task", "first"]
[[grain]]
command = ["./task", "{}"]
array = "1-3"
after = "first"
"""
SBATCH = """#!/bin/sh
case $* in --version) echo "slurm-wlm 22.05.8" ;; *-p\\ p1*) echo 17 ;; *) exit 1 ;; esac
"""


def commands():
    text = open(os.path.join(ROOT, "docs/HYPERQUEUE.md")).read()
    rows = re.findall(r"^\| (.*`hq .*|.*`--.*) \| (.*) \|$", text, re.M)
    assert 25 <= len(rows) <= 40 and len(rows) == len(re.findall(r"^\| .*`.*\|$", text, re.M)), len(rows)
    found = [command.replace("\\|", "|") for _, right in rows for command in re.findall(r"`((?:seq 10 \\\| )?dcs [^`]*)`", right)]
    assert all(re.search(r"`(?:seq|dcs) ", right) for _, right in rows), rows
    return found


def prose_is_short():
    text = re.sub(r"^\|.*$", "", open(os.path.join(ROOT, "docs/HYPERQUEUE.md")).read(), flags=re.M)
    assert len(text.split()) < 500, len(text.split())


def types(pool, directory, command):
    shell = ["/bin/sh", "-c", command]
    env = dict(pool.env, PATH=pool.bin + ":" + pool.env["PATH"])
    if command == "dcs top":
        screen = Terminal()
        process = subprocess.Popen(shell, env=dict(env, TERM="xterm"), stdin=screen.slave, stdout=screen.slave, stderr=subprocess.PIPE)
        screen.shows("local1")
        screen.type("q")
        assert process.wait(timeout=300) == 0, process.stderr.read()
        screen.close()
        return
    if command == "dcs page" or command.startswith(("dcs pilot slurm", "dcs pilot pbs")):
        with open(os.path.join(directory, "said"), "w+") as said:
            process = subprocess.Popen(["/bin/sh", "-c", "exec " + command], env=env, cwd=directory, stdout=said, stderr=said)
            wait_for(command, lambda: os.path.getsize(said.name) or process.poll() is not None)
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=300)
            text = open(said.name).read()
            assert "http" in text or "waiting for grains" in text, (command, text)
        return
    done = subprocess.run(shell, env=env, cwd=directory, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
    assert done.returncode == 0, (command, done.stdout.decode())
    print(f"$ {command}\n{done.stdout.decode()[:300]}", flush=True)


def main():
    prose_is_short()
    pool = Pool(servers=2)
    pilots = Pool()
    engine = batch_world.Engine("openpbs")
    directory = os.path.join(pool.base, "work")
    os.mkdir(directory)
    for name, text in (("task", "#!/bin/sh\necho \"$@\"; cat\n"), ("inputs", "a\nb\n"), ("study.toml", STUDY)):
        with open(os.open(os.path.join(directory, name), os.O_WRONLY | os.O_CREAT, 0o755), "w") as out:
            out.write(text)
    with open(os.open(engine.base + "/bin/sbatch", os.O_WRONLY | os.O_CREAT, 0o755), "w") as out:
        out.write(SBATCH)
    with open(os.open(engine.base + "/bin/squeue", os.O_WRONLY | os.O_CREAT, 0o755), "w") as out:
        out.write("#!/bin/sh\n")
    pilots.env["PATH"] = engine.base + "/bin:" + os.environ["PATH"]
    try:
        pilots.dcs("up", "--local", "0", "--pilots", "1", "--listen", f"127.0.0.1:{free_port()}", "--dir", pilots.dir)
        for command in commands():
            types(pilots if command.startswith("dcs pilot") else pool, directory, command)
    finally:
        for which in (pool, pilots):
            which.__exit__(*sys.exc_info())
        batch_world.shutil.rmtree(engine.base)


main()
