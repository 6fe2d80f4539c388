#!/usr/bin/python3
"""libdrmaa.so.1.0 on a pool: templates, jobs and bulks of jobs, how they end, holds, needs, and the program of docs/BRIDGES.md."""
import os
import re
import subprocess
import sys
import time

import drmaa_library as d
from drmaa_library import ALL, ANY, Tour, refused
from hurry import Hurry
from pool import ROOT, Pool, about, wait_for


def outside(tour):
    lib = tour.lib
    assert lib.version() == (1, 0) and lib.text("get_contact") == ""
    assert lib.text("get_DRM_system").startswith("DCS ") and lib.text("get_DRMAA_implementation").startswith("DCS ")
    assert all(lib.so.drmaa_strerror(code) for code in range(26)) and lib.so.drmaa_strerror(26) == b""
    assert "ru_utime" not in lib.listed("attr_name", "get_attribute_names")
    for call, arguments in ((lib.exit, ()), (lib.template, ()), (lib.state, ("1:1",)), (lib.wait, (ANY,)), (lib.control, (ALL, d.TERMINATE)),
                            (lib.synchronize, ([ALL],))):
        assert about(refused(d.NO_SESSION, call, *arguments), "call drmaa_init first")
    for contact in ("a b", "session=", "session=x", "-x", "x" * 57):
        assert about(refused(d.INVALID_CONTACT, lib.init, contact), "session=NUMBER"), contact
    assert about(refused(d.INVALID_CONTACT, lib.init, "session=77"), "no session 77")


def templates(tour):
    lib = tour.lib
    template = lib.template()
    for name in lib.listed("attr_name", "get_attribute_names"):
        refused(d.VALUE, lib.text, "get_attribute", template, name)
    for name, value in (("drmaa_wd", "/tmp"), ("drmaa_join_files", "y"), ("drmaa_block_email", "1"), ("drmaa_input_path", "h:/x"),
                        ("drmaa_start_time", "2031/01/02 03:04:05 -01:30"), ("drmaa_native_specification", "--cores=2 --memory 2G -V")):
        lib.set(template, name, value)
        assert lib.text("get_attribute", template, name) == value
    lib.set(template, "drmaa_v_env", ["A=1", "B=x=y"])
    assert lib.listed("attr_value", "get_vector_attribute", template, "drmaa_v_env") == ["A=1", "B=x=y"]
    assert lib.listed("attr_name", "get_vector_attribute_names") == ["drmaa_v_argv", "drmaa_v_env", "drmaa_v_email"]
    for code, name, value in ((d.INVALID_ARGUMENT, "drmaa_nothing", "x"), (d.INVALID_ARGUMENT, "drmaa_transfer_files", "io"),
                              (d.INVALID_ARGUMENT, "drmaa_v_argv", "x"), (d.INVALID_ARGUMENT, "drmaa_wd", ["x"]),
                              (d.VALUE, "drmaa_js_state", "held"), (d.VALUE, "drmaa_join_files", "yes"),
                              (d.FORMAT, "drmaa_output_path", "/tmp/x"), (d.FORMAT, "drmaa_v_env", ["A"]),
                              (d.FORMAT, "drmaa_start_time", "25:00"), (d.FORMAT, "drmaa_start_time", "soon"),
                              (d.FORMAT, "drmaa_wct_hlimit", "1h")):
        said = refused(code, lib.set, template, name, value)
        assert name in said, said
    assert about(refused(d.DENIED, lib.submit, template), "drmaa_remote_command is not set")
    lib.call("delete_job_template", template)


def jobs(tour):
    lib = tour.lib
    job = tour.sh("echo $0 $A $JOB_ID $SGE_TASK_ID; pwd; cat; echo err >&2", v_env=["A=b"], output_path=":out.txt", error_path=":err.txt")
    found, end, used = lib.wait(job)
    assert found == job and end == ("exited", 0), (found, end)
    assert tour.read("out.txt") == f"sh b {job} undefined\n{tour.work}\n" and tour.read("err.txt") == "err\n"
    assert used["exit_status"] == "0" and used["host"].startswith("local") and float(used["cpu"]) >= 0, used
    assert lib.state(job) == d.DONE
    assert about(refused(d.INVALID_JOB, lib.wait, job), "no job")
    os.mkdir(os.path.join(tour.work, "sub"))
    with open(os.path.join(tour.work, "sub/in.txt"), "w") as file:
        file.write("input\n")
    job = tour.sh("cat; echo e >&2", wd="$drmaa_hd_ph$/sub", input_path="anywhere:$drmaa_wd_ph$/in.txt", output_path=":$drmaa_hd_ph$/both.txt",
                  join_files="y", job_name="named")
    lib.synchronize([job])
    assert tour.read("both.txt") == "input\ne\n" and tour.grain(job)["label"] == "named"
    assert lib.wait(job)[1] == ("exited", 0)
    os.mkdir(os.path.join(tour.work, "logs"))
    job = tour.sh("echo o; echo e >&2", output_path=":logs", error_path=":logs", job_name="in/logs")
    lib.wait(job)
    assert [tour.read(f"logs/logs.{letter}{job.replace(':', '.')}") for letter in "oe"] == ["o\n", "e\n"]
    job = tour.sh("echo kept")
    lib.wait(job)
    assert tour.pool.dcs("grain", "cat", job).stdout == b"kept\n"


def bulks(tour):
    lib = tour.lib
    first = tour.sh("true")
    ids = lib.bulk(2, 10, 4, remote_command="sh", v_argv=["-c", "echo $SGE_TASK_ID; exit $SGE_TASK_ID"], output_path=":bulk.$drmaa_incr_ph$")
    session, number = map(int, first.split(":"))
    assert ids == [f"{session}:{number + i}" for i in (1, 2, 3)]
    lib.synchronize([ALL])
    assert [lib.wait(job)[1] for job in ids] == [("exited", code) for code in (2, 6, 10)]
    assert [tour.read(f"bulk.{i}") for i in (2, 6, 10)] == ["2\n", "6\n", "10\n"]
    assert lib.wait(ANY)[0] == first
    assert about(refused(d.INVALID_JOB, lib.wait, ANY), "no job")
    down = lib.bulk(3, 1, -1, remote_command="sh", v_argv=["-c", "exit $SGE_TASK_ID"])
    assert [lib.wait(job)[1][1] for job in down] == [3, 2, 1]
    for bad in ((0, 3, 1), (3, 1, 1), (1, 3, 0), (1, 3, -1), (1, 2000000000, 1)):
        refused(d.INVALID_ARGUMENT, lib.bulk, *bad, remote_command="true")
    ids = lib.bulk(1, 3, 1, remote_command="true")
    lib.synchronize([ALL], dispose=True)
    for job in ids:
        refused(d.INVALID_JOB, lib.wait, job)


def ends(tour):
    lib = tour.lib
    assert lib.wait(tour.sh("exit 3"))[1] == ("exited", 3)
    assert lib.wait(tour.sh("kill -TERM $$"))[1] == ("signaled", "SIGTERM")
    job = lib.run(remote_command="no-such-program")
    assert lib.wait(job)[1] == ("exited", 127) and b"no-such-program" in tour.pool.dcs("grain", "cat", "--err", job, check=False).stdout
    assert lib.wait(tour.sh("true", wd="/no/such/directory"))[1][0] == "exited"
    ids = lib.bulk(1, 6, 1, remote_command="sleep", v_argv=["1000"])  # more than the pool has slots
    wait_for("some that run, some that wait", lambda: sorted(map(lib.state, ids)) == [d.QUEUED] * 2 + [d.RUNNING] * 4, timeout=300)
    states = {job: lib.state(job) for job in ids}
    refused(d.TIMEOUT, lib.wait, ANY, 0)
    refused(d.TIMEOUT, lib.synchronize, ids, 1)
    refused(d.INVALID_ARGUMENT, lib.wait, ANY, -2)
    waits, runs = ids[-1], next(job for job in ids if states[job] == d.RUNNING)
    assert states[waits] == d.QUEUED
    for job in (waits, runs):
        lib.control(job, d.TERMINATE)
        lib.control(job, d.TERMINATE)  # once more: there is nothing to do
        assert lib.state(job) == d.FAILED
    assert lib.wait(waits)[1] == ("aborted", None) and lib.wait(runs)[1] == ("signaled", "SIGKILL")
    other = next(job for job in ids if job not in (waits, runs))
    tour.pool.dcs("grain", "kill", other)  # behind the library's back
    assert lib.wait(ANY)[0] == other
    lib.control(ALL, d.TERMINATE)
    lib.synchronize([ALL], dispose=True)
    for job, code in (("1:9999", d.INVALID_JOB), ("x", d.INVALID_JOB), ("99:1", d.INVALID_JOB), ("1:", d.INVALID_JOB)):
        refused(code, lib.state, job)
        refused(code, lib.wait, job, 0)
        refused(code, lib.control, job, d.TERMINATE)
        refused(code, lib.synchronize, [job], 0)


def holds(tour):
    lib = tour.lib
    held = tour.sh("echo ran", js_state="drmaa_hold", output_path=":held.txt")
    never = tour.sh("echo ran", js_state="drmaa_hold", output_path=":never.txt")
    assert lib.state(held) == lib.state(never) == d.ON_HOLD
    lib.control(held, d.HOLD)
    refused(d.TIMEOUT, lib.wait, held, 0)
    lib.control(held, d.RELEASE)
    assert lib.wait(held)[1] == ("exited", 0) and tour.read("held.txt") == "ran\n"
    lib.control(never, d.TERMINATE)
    assert lib.state(never) == d.FAILED and lib.wait(never)[1] == ("aborted", None) and not os.path.exists("never.txt")
    job = tour.sh("while [ ! -e over ]; do sleep 0.1; done")
    tour.until(job, d.RUNNING)
    for action, code in ((d.SUSPEND, d.SUSPEND_STATE), (d.RESUME, d.RESUME_STATE), (d.HOLD, d.HOLD_STATE), (d.RELEASE, d.RELEASE_STATE),
                         (7, d.INVALID_ARGUMENT)):
        assert refused(code, lib.control, job, action)
    tour.write("over")
    assert lib.wait(job)[1] == ("exited", 0)


def needs(tour):
    lib = tour.lib
    job = tour.sh("true", native_specification="--cores 1 --memory=64MiB --wall 0:10:00 --attempts 2 --notice 3 --thrash 4 --urgent",
                  wct_hlimit="00:02")
    lib.wait(job)
    row = tour.grain(job)
    assert [row[name] for name in ("cores", "memory_mb", "wall_s", "attempts", "notice", "thrash", "urgent")] == [1, 64, 120, 2, 3, 4, True], row
    job = tour.sh("true", native_specification="-shell yes -pe smp 2 -l h_vmem=1G,h_rt=1:00:00 -cwd -p 0")
    lib.wait(job)
    assert [tour.grain(job)[name] for name in ("cores", "memory_mb", "wall_s", "attempts")] == [2, 2048, 3600, 1]
    for native in ("-q all.q", "--cores 0", "--cores", "-pe smp", "-l gpu=1", "-l h_rt", "--wall=soon", "--memory 1X", "urgent"):
        assert about(refused(d.DENIED, tour.sh, "true", native_specification=native), "drmaa_native_specification it has --class"), native
    assert lib.wait(tour.sh("sleep 1000", duration_hlimit="1"))[1] == ("signaled", "SIGXCPU")
    for named in ({"job_category": "no-such-class"}, {"native_specification": "--class no-such-class"}):
        assert about(refused(d.DENIED, tour.sh, "true", **named), "no-such-class")
    os.environ["OF_THE_PROGRAM"] = "x"
    for native, wanted in (("--cores 1", "-"), ("-V", "x")):
        lib.wait(tour.sh("echo ${OF_THE_PROGRAM:--}", native_specification=native, output_path=":environment"))
        assert tour.read("environment") == wanted + "\n"
    at = int(time.time()) + 3
    job = tour.sh("date +%s", start_time=time.strftime("%Y/%m/%d %H:%M:%S", time.localtime(at)), output_path=":at")
    lib.wait(job)
    assert int(tour.read("at")) >= at
    assert refused(d.CONFLICT, tour.sh, "true", start_time="2199/01/01 00:00", wct_hlimit="10")


def page(tour):
    """The program of docs/BRIDGES.md, twice: it reaches its drmaa_exit, so the second time is a new session."""
    with open(os.path.join(ROOT, "docs/BRIDGES.md")) as file:
        text = file.read()
    program, result = re.search(r"```c\n(.*?)```\n\n```result\n(.*?)```", text, re.S).groups()
    with open(os.path.join(tour.work, "squares.c"), "w") as file:
        file.write(program)
    folder = os.path.dirname(d.LIBRARY)
    subprocess.run(["/usr/bin/cc", "-std=c11", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "squares.c", "-o", "squares", "-I" + os.path.join(ROOT, "libdcs/drmaa"),
                    "-L" + folder, "-ldrmaa", "-Wl,-rpath," + folder], check=True)
    said = [subprocess.run(["./squares"], stdout=subprocess.PIPE, text=True, check=True).stdout for _ in range(2)]
    sessions = [text.split()[1].split(":")[0] for text in said]
    assert sessions[0] != sessions[1] and all(text == re.sub(r"\b1:", session + ":", result) for text, session in zip(said, sessions)), said
    assert [tour.read(f"square-{i}.txt") for i in (1, 2, 3)] == ["1\n", "4\n", "9\n"]


def main():
    with Pool(servers=2, slots=2, interval=1) as pool, Hurry(pool):
        tour = Tour(pool)
        outside(tour)
        tour.lib.init()
        for part in (templates, jobs, bulks, ends, holds, needs, page):
            part(tour)
            print(f"{part.__name__}: seen", flush=True)
        tour.lib.exit()
    assert refused(d.COMMUNICATION, tour.lib.init), "there is no pool"
    print("programs of DRMAA run on a pool")
    return 0


if __name__ == "__main__":
    sys.exit(main())
