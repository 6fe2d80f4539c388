"""Plays the command line programs of OpenPBS, Torque and HTCondor where these cannot be had: they print what the real ones print,
and start, delete and kill jobs as these do. Called by the scripts that batch_world.py makes: DIRECTORY FLAVOUR PROGRAM ARGUMENT...

PBS starts a shell in a session of its own: OpenPBS gives it the name of the script on its standard input, Torque the script itself.
qdel sends SIGTERM to all processes of that session and SIGKILL a moment later, and when the shell ends, the rest is killed.
HTCondor starts the file, and signals that process alone."""
import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import time

HERE, FLAVOUR, KILL_DELAY, KEEP_COMPLETED, VACATE = "", "", 1, 3, 60
SERVER = "pbs-server"


@contextlib.contextmanager
def jobs():
    """All jobs, as {number: job}; what is changed in them is kept."""
    with open(HERE + "/lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with open(HERE + "/jobs.json") as text:
            known = json.load(text)
        yield known
        with open(HERE + "/jobs.new", "w") as out:
            json.dump(known, out)
        os.rename(HERE + "/jobs.new", HERE + "/jobs.json")


def record(event, number):
    with open(HERE + "/events", "a") as out:
        out.write(f"{event} {number}\n")


def capacity():
    return int(open(HERE + "/capacity").read())


def submit(job):
    with jobs() as known:
        number = str(1 + max([int(n) for n in known] + [int(open(HERE + "/first").read())]))
        with open(HERE + "/first", "w") as out:
            out.write(number)
        job.update(state="H" if os.path.exists(HERE + "/hold") else "Q", submitted=time.time())
        known[number] = job
    spool = f"{HERE}/spool/{number}"
    os.makedirs(spool + "/tmp")
    if FLAVOUR != "condor":
        with open(os.open(spool + "/script", os.O_WRONLY | os.O_CREAT, 0o700), "w") as out:
            out.write(open(job["script"]).read())
    subprocess.Popen([sys.executable, "-B", __file__, HERE, FLAVOUR, "run", number], stdin=subprocess.DEVNULL,
                     stdout=open(HERE + "/runner.log", "a"), stderr=subprocess.STDOUT, start_new_session=True, cwd="/")
    return number


def in_session(leader):
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError):
            fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
            if int(fields[3]) == leader and fields[0] != "Z":
                yield int(pid)


def signal_job(process, number):
    pids = [process.pid] if FLAVOUR == "condor" and number == signal.SIGTERM else list(in_session(process.pid))
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)


def wait_for_turn(number):
    while True:
        with jobs() as known:
            job = known.get(number)
            if job is None:
                return None
            busy = sum(other["state"] in "REX" for other in known.values())
            if job["state"] == "Q" and busy < capacity():
                job.update(state="R", started=time.time())
                return dict(job)
        time.sleep(0.1)


def start(number, job):
    spool = f"{HERE}/spool/{number}"
    env = {"TMPDIR": spool + "/tmp", "PATH": "/usr/bin:/bin"}
    out = open(spool + "/output", "w")
    options = {"stdout": out, "stderr": out, "start_new_session": True, "cwd": spool}
    if FLAVOUR == "condor":
        options["cwd"] = job["directory"]
        return subprocess.Popen(["/bin/sh", job["script"]], env=dict(env, _CONDOR_SCRATCH_DIR=spool), stdin=subprocess.DEVNULL, **options)
    env.update(PBS_JOBID=f"{number}.{SERVER}", HOME=os.environ.get("HOME", "/"), PBS_ENVIRONMENT="PBS_BATCH")
    if FLAVOUR == "torque":
        env["PBS_WALLTIME"] = str(job["limit"])
        return subprocess.Popen(["-sh"], executable="/bin/sh", env=env, stdin=open(spool + "/script"), **options)
    shell = subprocess.Popen(["-sh"], executable="/bin/sh", env=env, stdin=subprocess.PIPE, **options)
    shell.stdin.write((spool + "/script\n").encode())
    shell.stdin.close()
    return shell


def run(number):
    """What the host's daemon does for one job, from its place in the queue to its end."""
    signal.pthread_sigmask(signal.SIG_SETMASK, [])
    job = wait_for_turn(number)
    if job is None:
        return
    process = start(number, job)
    kill_at = None
    while process.poll() is None:
        with jobs() as known:
            deleted = known[number]["state"] == "X"
        late = time.time() > job["started"] + job["limit"]
        if kill_at is None and (deleted or late):
            record("deleted" if deleted else "limit", number)
            signal_job(process, signal.SIGTERM)
            kill_at = time.time() + (VACATE if FLAVOUR == "condor" else KILL_DELAY)
        if kill_at is not None and time.time() > kill_at:
            record("killed", number)
            signal_job(process, signal.SIGKILL)
            kill_at = float("inf")
        time.sleep(0.1)
    rest = list(in_session(process.pid))
    if rest:
        record("killed", number)
        signal_job(process, signal.SIGKILL)
    record("ended", number)
    with jobs() as known:
        if FLAVOUR == "torque":
            known[number]["state"] = "C"
        else:
            del known[number]
    if FLAVOUR == "torque":
        time.sleep(KEEP_COMPLETED)
        with jobs() as known:
            del known[number]


def fail(text, code=1):
    print(text, file=sys.stderr)
    sys.exit(code)


# ---- PBS

def seconds_of(text):
    hours, minutes, seconds = text.split(":")
    return int(hours) * 3600 + int(minutes) * 60 + int(seconds)


def clock(seconds):
    return "%02d:%02d:%02d" % (seconds // 3600, seconds // 60 % 60, seconds % 60)


def qsub(arguments):
    job, resources = {"cores": ""}, []
    while arguments and arguments[0].startswith("-"):
        option, value = arguments.pop(0), arguments.pop(0)
        if option == "-N":
            job["name"] = value
        elif option == "-l":
            resources += value.split(",")
        elif option == "-q" and value == "none":
            fail("qsub: Unknown queue" + (" MSG=cannot locate queue" if FLAVOUR == "torque" else ""), 170)
    asked = dict(r.split("=", 1) for r in resources)
    wanted, wrong = ("nodes", "select") if FLAVOUR == "torque" else ("select", "nodes")
    if wanted not in asked or wrong in asked or "walltime" not in asked:
        fail("qsub: Illegal attribute or resource value Resource_List", 188)
    job.update(limit=seconds_of(asked["walltime"]), asked=f"{wanted} = {asked[wanted]}", script=arguments[0])
    print(f"{submit(job)}.{SERVER}")


def attribute(name, value):
    """As prt_attr() of qstat folds long values: at a comma, else anywhere."""
    line, text, limit = f"    {name} = ", "", 78
    for i, part in enumerate(value.split(",")):
        part = ("," if i else "") + part
        if len(line) + len(part) < limit:
            line += part
            continue
        if i:
            text, line, part = text + line + ",\n", "\t", part[1:]
        while len(line.expandtabs()) + len(part) > limit:
            cut = limit - len(line.expandtabs())
            text, line, part = text + line + part[:cut] + "\n", "\t", part[cut:]
        line += part
    return text + line + "\n"


def described(number, job):
    date = lambda when: time.strftime("%a %b %e %H:%M:%S %Y", time.localtime(when))  # noqa: E731
    kind, amount = job["asked"].split(" = ")
    pairs = [("Job_Name", job["name"]), ("Job_Owner", "user@login1.example.org")]
    running = "started" in job
    if running:
        used = clock(int(time.time() - job["started"]) // 120 * 120)
        pairs += [("resources_used.cput", used), ("resources_used.mem", "13260kb"), ("resources_used.walltime", used)]
    pairs += [("job_state", {"X": "E"}.get(job["state"], job["state"])), ("queue", "workq"), ("server", SERVER),
              ("ctime", date(job["submitted"])), ("Error_Path", "login1.example.org:" + HERE + "/" + job["name"] + ".e" + number)]
    if running:
        pairs += [("exec_host", "node7/0-1" if FLAVOUR == "torque" else "node7/0*2")]
    pairs += [("Hold_Types", "u" if job["state"] == "H" else "n"), ("Join_Path", "oe"), ("Rerunable", "True"),
              ("Resource_List." + kind, amount), ("Resource_List.walltime", clock(job["limit"]))]
    if running and FLAVOUR != "torque":
        pairs += [("stime", date(job["started"])), ("session_id", "4711"), ("substate", "42")]
    pairs += [("Variable_List", "PBS_O_HOME=/home/user,PBS_O_LANG=en_US.UTF-8,PBS_O_PATH=/usr/local/bin:/usr/bin:/bin:/usr/local/sbin:"
               "/usr/sbin:/sbin:/opt/pbs/bin,PBS_O_MAIL=/var/spool/mail/user,PBS_O_SHELL=/bin/bash")]
    if FLAVOUR == "torque":
        pairs += [("comment", "Job held by user")] if job["state"] == "H" else []
        pairs += [("start_time", date(job["started"])), ("Walltime.Remaining", "17")] if running else []
    else:
        pairs += [("comment", {"H": "Job held by user on Thu Nov 26 at 00:58", "Q": "Not Running: Insufficient amount of resource: ncpus"
                               }.get(job["state"], "Job run at Thu Nov 26 at 00:58 on (node7:ncpus=2)"))]
    return f"Job Id: {number}.{SERVER}\n" + "".join(attribute(*pair) for pair in pairs) + "\n"


def qstat(arguments):
    if arguments == ["--version"]:
        print(*["Version: 6.1.3\nCommit: 7f8f8d1"] if FLAVOUR == "torque" else ["pbs_version = 22.05.11"],
              file=sys.stderr if FLAVOUR == "torque" else sys.stdout)
        return
    assert arguments.pop(0) == "-f", arguments
    failed = False
    with jobs() as known:
        listed = {number: dict(job) for number, job in known.items()}
    for word in arguments:
        number = word.split(".")[0]
        if number in listed:
            print(described(number, listed[number]), end="")
        else:
            print(f"qstat: Unknown Job Id {word}", file=sys.stderr)
            failed = True
    sys.exit(153 if failed else 0)


def qselect(arguments):
    assert arguments[0] == "-u" and arguments[1], arguments
    with jobs() as known:
        for number in known:
            print(f"{number}.{SERVER}")


def delete(number, unknown):
    with jobs() as known:
        job = known.get(number)
        if job is None or job["state"] == "C":
            fail(unknown, 153)
        if job["state"] in "QH":
            del known[number]
        else:
            job["state"] = "X"


def qdel(arguments):
    delete(arguments[0].split(".")[0], f"qdel: Unknown Job Id {arguments[0]}")


# ---- HTCondor

def condor_submit(arguments):
    if arguments == ["-version"]:
        print("$CondorVersion: 23.4.0 2024-02-08 BuildID: 712251 PackageID: 23.4.0-1 $\n$CondorPlatform: x86_64_Debian12 $")
        return
    lines = []
    while arguments[0].startswith("-"):
        assert arguments.pop(0) == "-append", arguments
        lines.append(arguments.pop(0))
    text = open(arguments[0]).read().splitlines()
    assert text[-1] == "queue", text
    said = dict(re.split(r"\s*=\s*", line, maxsplit=1) for line in text[:-1] + lines)
    if "request_gpus" in said and not said["request_gpus"].isdigit():
        fail(f"ERROR: request_gpus={said['request_gpus']} is invalid, it must evaluate to a number")
    assert said["executable"] == "/bin/sh" and said["transfer_executable"] == "false", said
    script = re.fullmatch("\"'(.*)'\"", said["arguments"])[1].replace("''", "'").replace('""', '"')
    with open(said["log"], "a") as log:  # on the host of the submission, as that account
        log.write("000 (...) Job submitted\n")
    number = submit({"name": said["+DcsPilot"].strip('"'), "limit": int(said["+DcsLimit"]), "script": script,
                     "directory": said["initialdir"]})
    print(f"Submitting job(s).\n1 job(s) submitted to cluster {number}.")


def condor_q(arguments):
    assert arguments[0] == "-constraint" and arguments[2] == "-af:t", arguments
    wanted = re.fullmatch(r'regexp\("(.*)", DcsPilot\)', arguments[1]).group(1)
    with jobs() as known:
        listed = {number: dict(job) for number, job in known.items()}
    for number, job in listed.items():
        if not re.search(wanted, job["name"]):
            continue
        status = {"Q": 1, "R": 2, "X": 3, "H": 5}[job["state"]]
        running = "started" in job
        values = {"ClusterId": number, "ProcId": 0, "DcsPilot": job["name"], "JobStatus": status, "DcsLimit": job["limit"],
                  "RemoteHost": "slot1_1@node7.example.org" if running else "undefined",
                  "JobCurrentStartDate": int(job["started"]) if running else "undefined", "ServerTime": int(time.time()),
                  "HoldReason": "via condor_hold (by user user)" if status == 5 else "undefined"}
        print("\t".join(str(values[name]) for name in arguments[3:]))


def condor_rm(arguments):
    delete(arguments[0].split(".")[0], f"Couldn't find/remove all jobs matching cluster.proc {arguments[0]}")
    print(f"Job {arguments[0]} marked for removal")


def main():
    global HERE, FLAVOUR
    HERE, FLAVOUR, program, *arguments = sys.argv[1:]
    if program == "run":
        run(arguments[0])
    else:
        {"qsub": qsub, "qstat": qstat, "qselect": qselect, "qdel": qdel, "condor_submit": condor_submit, "condor_q": condor_q,
         "condor_rm": condor_rm}[program](arguments)


if __name__ == "__main__":
    main()
