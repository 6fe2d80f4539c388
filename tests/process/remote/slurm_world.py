"""A Slurm of this test's own on loopback: munged, slurmctld and slurmd with all their files in one directory. Debian's
packages slurmctld, slurmd, slurm-client and munge have the programs; none of their services is used."""
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import tempfile

from pool import free_port, start_time, wait_for

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scancel", "scontrol")
ENGINE_PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"

CONF = """ClusterName=dcstest
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ctld_port}
SlurmdPort={slurmd_port}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={base}/munge.sock
CredType=cred/munge
StateSaveLocation={base}/ctld
SlurmdSpoolDir={base}/slurmd
SlurmctldPidFile={base}/slurmctld.pid
SlurmdPidFile={base}/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
JobCompType=jobcomp/none
MpiDefault=none
SwitchType=switch/none
SchedulerType=sched/builtin
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
JobRequeue=1
ReturnToService=2
SlurmdTimeout=300
MinJobAge=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES MaxTime=INFINITE State=UP
"""


def missing():
    """The programs that this machine lacks."""
    return [name for name in PROGRAMS if shutil.which(name, path=ENGINE_PATH) is None]


def children_of(name, base):
    """Pids of the processes of that name whose command line or environment names the directory."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            if open(f"/proc/{pid}/comm").read().strip() != name[:15]:
                continue
            text = open(f"/proc/{pid}/cmdline", "rb").read() + open(f"/proc/{pid}/environ", "rb").read()
        except OSError:
            continue
        if base.encode() in text and start_time(int(pid)) is not None:
            found.append(int(pid))
    return sorted(found)


class Slurm:
    def __init__(self, cpus):
        self.base = tempfile.mkdtemp(prefix="dcs-slurm-")
        self.host = socket.gethostname().split(".")[0]
        self.env = dict(os.environ, PATH=ENGINE_PATH, SLURM_CONF=os.path.join(self.base, "slurm.conf"))
        for folder in ("ctld", "slurmd"):
            os.mkdir(os.path.join(self.base, folder))
        with open(self.env["SLURM_CONF"], "w") as conf:
            conf.write(CONF.format(host=self.host, base=self.base, cpus=cpus, ctld_port=free_port(), slurmd_port=free_port()))
        self.running = {}

    def __enter__(self):
        key = os.path.join(self.base, "munge.key")
        with open(os.open(key, os.O_WRONLY | os.O_CREAT, 0o400), "wb") as out:
            out.write(os.urandom(128))
        self.start("munged", "--foreground", "--force", "--key-file=" + key, "--num-threads=2",
                   *(f"--{what}-file={self.base}/munged.{what}" for what in ("pid", "log", "seed")),
                   f"--socket={self.base}/munge.sock")
        wait_for("munge's socket", lambda: os.path.exists(self.base + "/munge.sock"))
        self.start("slurmctld", "-D", "-i")
        self.start_slurmd()
        wait_for("an idle node", lambda: b"idle" in self.say("sinfo", "--noheader", "--format=%T", check=False))
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            for name in self.running:
                print(f"---- {name}", *open(f"{self.base}/{name}.out", errors="replace").read().splitlines()[-30:], sep="\n")
        with contextlib.suppress(Exception):
            self.say("scancel", "--user=root", "--signal=KILL", check=False)
            wait_for("the end of all jobs", lambda: not self.jobs(), timeout=40)
        for pid in children_of("slurmstepd", self.base):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for name in list(self.running)[::-1]:
            self.stop(name, signal.SIGTERM)
        shutil.rmtree(self.base, ignore_errors=True)

    def start(self, name, *arguments):
        with open(f"{self.base}/{name}.out", "ab") as out:
            self.running[name] = subprocess.Popen([shutil.which(name, path=ENGINE_PATH), *arguments], env=self.env, stdout=out,
                                                  stderr=out, stdin=subprocess.DEVNULL)

    def start_slurmd(self):
        self.start("slurmd", "-D")

    def stop(self, name, number):
        process = self.running.pop(name)
        process.send_signal(number)
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def say(self, *line, check=True):
        return subprocess.run(line, env=self.env, cwd=self.base, check=check, timeout=300, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT).stdout

    def jobs(self, form="%i|%j|%T"):
        text = self.say("squeue", "--noheader", "--format=" + form).decode()
        return [line.split("|") for line in text.splitlines() if line.strip()]
