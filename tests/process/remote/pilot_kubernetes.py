"""deploy/kubernetes: the manifests are YAML of the kinds that they claim; each command and option in them exists; the commands of
docs/PILOTS.md make the files that they mount; and what a container executes, run by hand, leaves with checkpoints at SIGTERM."""
import os
import re
import signal
import subprocess
import sys

from pilot_grains import Work
from pool import ROOT, Pool, free_port, program, start_time, wait_for

FOLDER = os.path.join(ROOT, "deploy/kubernetes")
MARGIN_OF_LEAVING = 15 + 15  # seconds: for last checkpoints, and for the launcher
GRAINS, STEPS, INTERVAL = 1, 150, 2


def manifest(name):
    import yaml
    with open(os.path.join(FOLDER, name)) as text:
        (document,) = yaml.safe_load_all(text)
    return document


def check_form(document, kind, version):
    assert (document["kind"], document["apiVersion"]) == (kind, version)
    spec = document["spec"]["template"]["spec"]
    labels = document["spec"]["template"]["metadata"]["labels"]
    assert document["spec"].get("selector", {"matchLabels": labels})["matchLabels"] == labels
    assert (spec.get("restartPolicy", "Always") == "Never") == (kind == "Job"), "a job of Kubernetes is not restarted in its pod"
    assert spec["terminationGracePeriodSeconds"] > MARGIN_OF_LEAVING and spec["securityContext"]["runAsNonRoot"]
    (container,) = spec["containers"]
    volumes, mounts = {v["name"] for v in spec["volumes"]}, {m["name"]: m["mountPath"] for m in container["volumeMounts"]}
    assert volumes == set(mounts), (volumes, mounts)
    env = {e["name"]: e["value"] for e in container["env"]}
    assert {env["DCS_CERTIFICATES"], env["TMPDIR"]} == set(mounts.values()), (env, mounts)
    assert container["command"] == ["/bin/sh", "-euc"]
    (script,) = container["args"]
    return script


def check_words(script, limit=None):
    """Each option of `dcs pilot serve` in it exists; the limit is that of the job."""
    line = re.search(r"exec dcs (pilot serve) (.*)", script)
    known = subprocess.run([program("dcs"), *line[1].split(), "--help"], check=True, stdout=subprocess.PIPE, text=True).stdout
    for option in re.findall(r"--[a-z-]+", line[2]):
        assert re.search(rf"^  {option} ", known, re.M), option
    if limit is not None:
        assert f"--limit {limit // 3600}h" in line[2], (line[2], limit)


def check_image():
    text = open(os.path.join(FOLDER, "Containerfile")).read()
    control = open(os.path.join(ROOT, "deploy/debian/control")).read()
    for package in re.findall(r"packages/([a-z-]+)_", text):
        assert f"\nPackage: {package}\n" in control, package
    for path in re.findall(r"(?:COPY|RUN) (deploy/\S+)", text):
        assert os.path.exists(os.path.join(ROOT, path)), path


class Kubernetes:
    """Runs what a container executes, in its environment."""
    def __init__(self, pool, address):
        self.pool, self.address, self.running = pool, address, []
        self.certificates = os.path.join(pool.base, "certificates")

    def begin(self, name, script, **env):
        work = os.path.join(self.pool.base, name)
        os.mkdir(work)
        env.update(DCS_SCHEDULER=self.address, DCS_CERTIFICATES=self.certificates, TMPDIR=work, PATH=self.pool.bin + ":/usr/bin:/bin")
        with open(work + ".out", "w") as out:
            process = subprocess.Popen(["/bin/sh", "-euc", script], env=env, stdout=out, stderr=out, cwd="/", start_new_session=True)
        self.running.append(process)
        return process, work

    def end(self):
        for process in self.running:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)
        for process in self.running:
            process.wait(timeout=120)
        for name in sorted(os.listdir(self.pool.base)):
            if name.endswith(".out"):
                print(f"---- {name}", open(os.path.join(self.pool.base, name)).read()[-3000:], sep="\n")


def make_secret(pool):
    """The lines of docs/PILOTS.md up to kubectl, which a function plays that keeps the files as the secret's volume has them."""
    section = re.search(r"\n## Kubernetes\n(.*?)\n## ", open(os.path.join(ROOT, "docs/PILOTS.md")).read(), re.S)[1]
    (lines,) = re.findall(r"```text\n(.*?)```", section, re.S)
    kubectl = """kubectl() {
    [ "$1" = create ] || { echo "kubectl $*" >>applied; return 0; }
    [ "$1 $2 $3 $4" = "create secret generic dcs-pilots" ]; shift 4
    for file; do file=${file#--from-file=}; cp "${file#*=}" "$CERTIFICATES/${file%%=*}"; done
}
"""
    certificates = os.path.join(pool.base, "certificates")
    os.mkdir(certificates)
    lines, count = re.subn(r"^dcs up .*\n", "", lines, flags=re.M)  # the pool is there
    assert count == 1, lines
    subprocess.run(["/bin/sh", "-eu", "-c", kubectl + lines], cwd=pool.base, check=True, timeout=120,
                   env=dict(pool.env, CERTIFICATES=certificates, PATH=pool.bin + ":/usr/bin:/bin", HOME=pool.base))
    applied = open(os.path.join(pool.base, "applied")).read().split()
    assert [os.path.join(ROOT, word) for word in applied if word.endswith(".yaml")] == [os.path.join(FOLDER, "statefulset.yaml")], applied
    assert len(os.listdir(certificates)) == 6, os.listdir(certificates)


def drains(pool, kubernetes, stateful, job):
    work = Work(pool, GRAINS, STEPS)
    worker = work.start()
    first, place = kubernetes.begin("first", stateful, HOSTNAME="dcs-pilot-0")
    rows = lambda: pool.json("grain", "ls", "all")["grains"]  # noqa: E731
    wait_for("a checkpoint on the first pod", lambda: any(g["state"] == "running" and g["checkpoint_age_s"] >= 0 for g in rows()), timeout=200)
    assert rows()[0]["host"] == "pilot1", rows()
    first.send_signal(signal.SIGTERM)
    assert first.wait(timeout=120) == 0, open(place + ".out").read()
    assert os.listdir(place) == ["pki"], os.listdir(place)
    _, place = kubernetes.begin("second", job, JOB_COMPLETION_INDEX="1")
    wait_for("the second pod", lambda: pool.json("host", "show", "pilot2")["host"]["connected"], timeout=120)
    out, err = worker.communicate(timeout=300)
    assert worker.returncode == 0, (out, err)
    steps, again = work.check(out)
    assert again < STEPS // 3, (steps, again)  # it went on from a checkpoint; a busy host may come late with the last one


def main():
    try:
        stateful = check_form(manifest("statefulset.yaml"), "StatefulSet", "apps/v1")
    except ImportError:
        print("needs python3-yaml (deploy/install-packages --tests)")
        sys.exit(77)
    document = manifest("job.yaml")
    job = check_form(document, "Job", "batch/v1")
    check_words(stateful)
    check_words(job, document["spec"]["activeDeadlineSeconds"])
    check_image()
    pool = Pool()
    address = f"127.0.0.1:{free_port()}"
    pool.dcs("up", "--local", "0", "--pilots", "2", "--listen", address, "--interval", str(INTERVAL), "--dir", pool.dir)
    kubernetes = Kubernetes(pool, address)
    try:
        make_secret(pool)
        drains(pool, kubernetes, stateful, job)
    finally:
        kubernetes.end()
        pool.__exit__(*sys.exc_info())
    assert all(start_time(process.pid) is None for process in kubernetes.running)


main()
