#!/usr/bin/python3
"""Named resources on real daemons: a host of four made-up GPUs, a pool of three licences. Each grain locks a file for
each index that it got (the kernel frees it with the process), so two grains with one index see each other; meanwhile
scheduler, server and launcher are killed. A grain that demands too much waits, and explain says why. What a server is
given by --resources reaches the scheduler, though the host table does not mention it."""
import os
import signal
import subprocess
import threading

from pool import Pool, program, tells, wait_for

SCRIPT = r"""import fcntl, os, sys, time
mine = [i for i in os.environ["DCS_RESOURCE_GPU"].split(",")]
assert os.environ["CUDA_VISIBLE_DEVICES"] == ",".join(mine), os.environ
held = []
for i in mine:
    held.append(open(os.path.join(sys.argv[1], "gpu" + i), "a"))
    try:
        fcntl.flock(held[-1], fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        open(os.path.join(sys.argv[1], "twice"), "a").write(i + "\n")
time.sleep(0.4)
print("had", len(mine), "of", sys.argv[2])
"""


def run_map(pool, folder, demand, count, into):
    done = subprocess.run([program("dcs"), "map", "--new", "--resource", demand, "--", "/usr/bin/python3", os.path.join(folder, "grain.py"),
                           folder], input="".join(f"{i}\n" for i in range(count)).encode(), env=pool.env, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, timeout=600)
    into.append((demand, done.returncode, sorted(done.stdout.decode().split("\n"))[1:], done.stderr.decode()))


def up(pool):
    pool.dcs("up", "--local", "2", "--slots", "6", "--interval", "1", "--resources", "gpu=[0,1,2,5],scratch_gb=100")


def indices_are_not_shared(pool, folder):
    done, counts = [], {"gpu=1": 40, "gpu=2,scratch_gb=30": 10, "gpu=4": 4}
    maps = [threading.Thread(target=run_map, args=(pool, folder, demand, count, done)) for demand, count in counts.items()]
    for one in maps:
        one.start()
    wait_for("grains on the GPUs", lambda: len(pool.grain_processes("local1")) >= 2)
    for role, name in (("scheduler", "scheduler"), ("grainserver", "local1"), ("scheduler", "scheduler"),
                       ("launcher", "local1"), ("grainserver", "local1")):
        wait_for("grains on the GPUs", lambda: pool.grain_processes("local1") or not any(m.is_alive() for m in maps))
        pool.kill(role, name)
        up(pool)
        for row in pool.json("host", "ls")["hosts"]:
            assert row["name"] != "local2" or row["resources"] in ("", "container=65536"), row
    for one in maps:
        one.join()
    for demand, code, lines, errors in done:
        gpus = demand.split(",")[0].split("=")[1]
        assert code == 0, (demand, code, errors)
        assert lines == sorted(f"had {gpus} of {i}" for i in range(counts[demand])), (demand, lines)
    assert not os.path.exists(os.path.join(folder, "twice")), open(os.path.join(folder, "twice")).read()
    used = {name for name in os.listdir(folder) if name.startswith("gpu")}
    assert used == {"gpu0", "gpu1", "gpu2", "gpu5"}, used


def a_grain_that_is_killed_keeps_its_index_until_it_has_ended(pool):
    """The scheduler has the slot and the index of a killed grain free at once; the host has not."""
    stubborn = pool.start([program("dcs"), "run", "--resource", "gpu=4", "--", "/bin/sh", "-c", "trap '' TERM; sleep 600 & wait; wait"],
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    grain = wait_for("the first", lambda: next((g for g in pool.json("grain", "ls", "all")["grains"] if g["state"] == "running"), None))
    wait_for("its process", lambda: pool.grain_processes("local1"))
    (_, entry, pid, start), = pool.grain_processes("local1")
    pool.dcs("grain", "kill", f"{grain['session']}:{grain['grain']}")
    after = pool.dcs("run", "--resource", "gpu=1", "--", "/bin/sh", "-c",
                     f"echo $DCS_RESOURCE_GPU; kill -0 {pid} 2>/dev/null && echo both || echo alone")
    assert after.stdout == b"0\nalone\n", after.stdout
    stubborn.wait()


def what_waits_is_explained(pool):
    low = pool.start([program("dcs"), "run", "--resource", "gpu=9", "--", "true"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    _, said = low.communicate(timeout=300)
    assert tells(said, "no host offers more 4 gpu"), said
    pool_wide = os.path.join(pool.dir, "scheduler", "policy")
    with open(pool_wide, "w") as file:
        file.write("resource licence 3\n")
    pool.dcs("reload")
    first = pool.start([program("dcs"), "run", "--resource", "licence=2", "--", "sleep", "600"])
    running = wait_for("the first", lambda: next((g for g in pool.json("grain", "ls", "all")["grains"] if g["state"] == "running"), None))
    name = f"{running['session']}:{running['grain']}"
    second = pool.start([program("dcs"), "run", "--resource", "licence=2", "--", "sh", "-c", "echo $DCS_RESOURCE_LICENCE"], stdout=subprocess.PIPE)
    waiting = wait_for("the second", lambda: next((g for g in pool.json("grain", "ls", "all")["grains"] if g["state"] == "ready"), None))
    why = pool.json("grain", "explain", f"{waiting['session']}:{waiting['grain']}")
    assert tells(why["summary"], "2 3 licence use") and f"/{name}" in why["summary"], why["summary"]
    assert waiting["resources"] == "licence=2", waiting
    pool.dcs("grain", "kill", name)
    assert second.communicate(timeout=120)[0] == b"2\n"
    first.wait()


def hosts_show_them(pool):
    row = pool.json("host", "show", "local1")["host"]
    assert row["resources"].removeprefix("container=65536,") == "gpu=[0,1,2,5],scratch_gb=100", row["resources"]
    table = pool.dcs("host", "ls").stdout.decode()
    assert "RESOURCES" in table and "gpu 0/4, scratch_gb 0/100" in table, table


def run_on(pool, demand):
    """The CPUs that a grain may use."""
    ran = pool.dcs("run", "--resource", demand, "--", "/usr/bin/python3", "-c", "import os; print(*sorted(os.sched_getaffinity(0)))")
    return list(map(int, ran.stdout.split()))


def what_a_server_is_given_reaches_the_scheduler(pool):
    pid = pool.pid("grainserver", "local2")
    words = open(f"/proc/{pid}/cmdline").read().split("\0")[:-1]
    words = words[:words.index("--ready-fd")]
    cpus = sorted(os.sched_getaffinity(0))[:2]
    offer = f"cpu=[{','.join(map(str, cpus))}],foo=3"
    words[words.index("--resources") + 1] = offer
    assert "foo" not in open(os.path.join(pool.dir, "scheduler", "hosts")).read()
    pool.kill("grainserver", "local2")
    server = pool.start(words, stdout=subprocess.DEVNULL)
    for _ in range(2):
        wait_for("the resource at local2", lambda: pool.json("host", "show", "local2")["host"]["resources"] == offer)
        ran = pool.dcs("run", "--resource", "foo=2", "--", "/bin/sh", "-c", "echo $DCS_RESOURCE_FOO")
        assert ran.stdout == b"2\n", ran.stdout
        for count in range(1, len(cpus) + 1):  # which pins the grain to them
            assert run_on(pool, f"cpu={count}") == cpus[:count], (cpus, count)
        assert run_on(pool, "foo=1") == sorted(os.sched_getaffinity(0))
        pool.kill("scheduler", "scheduler")
        up(pool)
    # The scheduler has just begun: a grain that comes before the server's first call-in waits for it.
    assert pool.dcs("run", "--resource", "foo=1", "--", "true").stdout == b""
    server.terminate()
    server.wait()


def cpus_that_the_host_lacks(pool):
    """A server refuses to offer them; of the host table, grains say what is wrong."""
    has = sorted(os.sched_getaffinity(0))[0]
    offer = f"cpu=[{has},1000]"
    done = subprocess.run([program("dcs_grainserver"), "--name", "x", "--dir", os.path.join(pool.base, "x"), "--scheduler",
                           os.path.join(pool.dir, "scheduler", "server.sock"), "--resources", offer], stderr=subprocess.PIPE)
    assert done.returncode == 2 and tells(done.stderr, f"resources {offer} CPU 1000 only {has}"), done
    said = pool.dcs("up", "--resources", offer, check=False)
    assert said.returncode == 2 and tells(said.stderr, f"resources {offer} CPU 1000"), said
    up(pool)
    table = os.path.join(pool.dir, "scheduler", "hosts")
    lines = open(table).read().splitlines()
    with open(table, "w") as file:
        file.write("".join(line + (" resources=cpu=[1000]" if line.startswith("local2 ") else "") + "\n" for line in lines))
    pool.dcs("reload")
    wrong = pool.start([program("dcs"), "run", "--resource", "cpu=1", "--", "true"], stderr=subprocess.DEVNULL)
    waiting = wait_for("the grain", lambda: next((g for g in pool.json("grain", "ls", "all")["grains"] if g["state"] == "ready"), None))
    wait_for("the reason", lambda: tells(pool.dcs("grain", "explain", f"{waiting['session']}:{waiting['grain']}").stdout,
                                         "CPU 1000 correct cpu host table"))
    wrong.kill()
    wrong.wait()


def main():
    with Pool(servers=2, slots=6) as pool:
        up(pool)
        folder = os.path.join(pool.base, "work")
        os.mkdir(folder)
        with open(os.path.join(folder, "grain.py"), "w") as file:
            file.write(SCRIPT)
        hosts_show_them(pool)
        indices_are_not_shared(pool, folder)
        a_grain_that_is_killed_keeps_its_index_until_it_has_ended(pool)
        what_waits_is_explained(pool)
        what_a_server_is_given_reaches_the_scheduler(pool)
        cpus_that_the_host_lacks(pool)


main()
