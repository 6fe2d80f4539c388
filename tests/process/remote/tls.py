"""Grain servers on other hosts: they join with a code or by approval, run grains over TLS, and a peer that is not one of
the pool's is refused with a message that says which check failed. A proxy in between sees nothing in the clear."""
import json
import os
import re
import shutil
import signal
import socket
import ssl
import subprocess
import tempfile
import threading

from hurry import Hurry
from pool import BIN, about, frame_in, free_port, program, tells, wait_for

TOOLS = os.environ.get("DCS_TOOLS") or os.path.join(os.path.dirname(BIN), "tests")
SECRET = "a-secret-that-nobody-on-the-way-may-read"
TIMES = "interval=0.5 alert=60 limit=600 extended=1200"  # no host is given up for a busy machine


class Proxy(threading.Thread):
    """Passes bytes on between a peer that connects and the scheduler, and keeps them all."""

    def __init__(self, port):
        super().__init__(daemon=True)
        self.port, self.seen, self.ends, self.whole = port, bytearray(), set(), threading.Event()
        self.whole.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = "127.0.0.1:%d" % self.listener.getsockname()[1]
        self.start()

    def run(self):
        while True:
            client, _ = self.listener.accept()
            try:
                server = socket.create_connection(("127.0.0.1", self.port()))
            except OSError:
                client.close()
                continue
            for source, target in ((client, server), (server, client)):
                threading.Thread(target=self.pump, args=(source, target), daemon=True).start()

    def part(self):
        """Nothing comes through any more, and no peer learns it, until whole.set()."""
        self.whole.clear()

    def cut(self):
        """A peer that is connected has to connect again."""
        for end in list(self.ends):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def pump(self, source, target):
        self.ends.add(source)
        try:
            while data := source.recv(65536):
                self.seen += data
                self.whole.wait()
                target.sendall(data)
        except OSError:
            pass
        self.ends.discard(source)
        for end in (source, target):
            try:
                end.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass


class TlsPool:
    options = ()  # more of them, for the scheduler

    def __init__(self):
        self.base = tempfile.mkdtemp(prefix="dcs-tls-")
        self.directory = os.path.join(self.base, "scheduler")
        os.mkdir(self.directory)
        self.table("h1", "h2")
        self.env = dict(os.environ, DCS_DIR=self.base)
        self.env.pop("DCS_AUTH_FD", None)
        self.running, self.port_number = {}, free_port()
        self.log_path = os.path.join(self.base, "scheduler.log")
        self.start_scheduler()
        self.proxy = Proxy(lambda: self.port_number)

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        if kind is not None:
            for name in sorted(os.listdir(self.base)):
                if name.endswith(".log"):
                    print(f"---- {name}", *self.text(name).splitlines()[-40:], sep="\n")
        for name in list(self.running):
            self.stop(name)
        for name in ("h1", "h2", "h3"):
            path = os.path.join(self.base, name, "launcher.lock")
            if os.path.exists(path):
                try:
                    os.kill(int(open(path).read().split()[0]), signal.SIGTERM)
                except (ProcessLookupError, IndexError, ValueError):
                    pass
        shutil.rmtree(self.base, ignore_errors=True)

    def grain_processes(self):
        """As Pool's, for Hurry."""
        found = []
        for name in ("h1", "h2", "h3"):
            grains = os.path.join(self.base, name, "grains")
            for entry in os.listdir(grains) if os.path.isdir(grains) else ():
                try:
                    pid, start = open(os.path.join(grains, entry, "pid")).read().split()[:2]
                    found.append((name, entry, int(pid), int(start)))
                except (OSError, ValueError):
                    pass
        return found

    def table(self, *hosts):
        with open(os.path.join(self.directory, "hosts"), "w") as file:
            file.write("# the hosts of this pool\n")
            for host in hosts:
                file.write(f"{host} class=0x1 slots=1 {TIMES}\n")

    def start_scheduler(self):
        before = len(self.text("scheduler.log"))
        # The same port each time: grain servers look for it there.
        self.start("scheduler", "dcs_scheduler", "--dir", self.directory, "--tls", f"127.0.0.1:{self.port_number}",
                   *self.options)
        def port():
            found = re.search(r"(?:hosts|served) at 127.0.0.1:(\d+) with", self.text("scheduler.log")[before:])
            return found and "serving in" in self.text("scheduler.log")[before:] and found.group(1)
        self.port_number = int(wait_for("the scheduler", port))

    def start_server(self, name):
        self.start(name, "dcs_grainserver", "--name", name, "--dir", os.path.join(self.base, name), "--scheduler",
                   self.proxy.address, "--log-level", "debug", "--run-as", "self", "--courtesy", "priority")

    def start(self, name, what, *arguments):
        log = open(os.path.join(self.base, name + ".log"), "a")
        self.running[name] = subprocess.Popen([program(what), *arguments], stderr=log, env=self.env)
        log.close()

    def stop(self, name, how=signal.SIGTERM):
        process = self.running.pop(name)
        process.send_signal(how)
        process.wait()

    def text(self, name):
        try:
            return open(os.path.join(self.base, name), errors="replace").read()
        except FileNotFoundError:
            return ""

    def logged(self, name, words):
        wait_for(f"{words!r} in {name}", lambda: tells(self.text(name), words))

    def dcs(self, *arguments, check=True, data=None, path=None):
        result = subprocess.run([path or program("dcs"), *arguments], input=data, env=self.env, timeout=120,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
        if check:
            assert result.returncode == 0, f"dcs {arguments}: {result.returncode}\n{result.stdout}{result.stderr}"
        return result

    def json(self, *arguments):
        return json.loads(self.dcs(*arguments, "-o", "json").stdout)

    def code(self, *arguments):
        """The words after `dcs` of the line that `dcs token create` prints, by way of the proxy."""
        words = self.dcs("token", "create", *arguments).stdout.split()
        assert words[:3] == ["dcs", "host", "join"] and len(words) == 8, words
        assert words[3] == f"127.0.0.1:{self.port_number}"
        words[3] = self.proxy.address
        return words[1:]

    def join(self, name, *arguments, check=True, data=None):
        line = arguments or self.code("--host", name)
        return self.dcs(*line, "--dir", os.path.join(self.base, name), check=check, data=data)

    def call(self, directory, name, *more):
        """What a grain server with that certificate and name gets to hear."""
        result = subprocess.run([os.path.join(TOOLS, "tls_call"), f"127.0.0.1:{self.port_number}", directory, name,
                                 *more], stdout=subprocess.PIPE, timeout=60, text=True)
        return result.stdout

    def forge(self, out, role, name, age=0, life=90, authority=None):
        path = os.path.join(self.base, out)
        subprocess.run([os.path.join(TOOLS, "tls_forge"), authority or os.path.join(self.directory, "pki"), path,
                        role, name, str(age), str(life)], check=True)
        return path

    def host(self, name):
        return {h["name"]: h for h in self.json("host", "ls")["hosts"]}.get(name)

    def wait_active(self, *names):
        for name in names:
            wait_for(f"{name} to call in", lambda: (self.host(name) or {}).get("connected"))


def files_below(directory):
    for folder, _, names in os.walk(directory):
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isfile(path):
                yield path, open(path, "rb").read()


def hosts_join_and_work(pool):
    for name in ("h1", "h2"):
        line = pool.code("--host", name)
        at = line.index("--token") + 1
        secretly = [*line[:at], "-", *line[at + 1:]]  # the code goes where ps does not see it
        joined = pool.join(name, *secretly, data=line[at] + "\n") if name == "h2" else pool.join(name, *line)
        assert tells(joined.stdout, f"host {name} joined pool"), joined
        assert os.stat(os.path.join(pool.base, name, "pki", "key.pem")).st_mode & 0o777 == 0o600
        code = bytes.fromhex(line[at])
        for path, content in files_below(pool.directory):
            assert code not in content and code.hex().encode() not in content, f"{path} holds the code"
        assert code.hex() not in pool.text("scheduler.log")
        pool.start_server(name)
    assert os.stat(os.path.join(pool.directory, "pki", "authority-key.pem")).st_mode & 0o777 == 0o600
    pool.wait_active("h1", "h2")
    inputs = [f"{SECRET}-{i}" for i in range(8)]
    out = pool.dcs("map", "--", "/bin/sh", "-c", "sleep 0.2; echo out-{}", data="\n".join(inputs) + "\n").stdout
    assert out.splitlines() == ["out-" + i for i in inputs], out
    big = SECRET * 100_000
    assert pool.dcs("run", "--", "/bin/cat", data=big).stdout == big
    assert min(pool.host(name)["finished"] for name in ("h1", "h2")) > 0, pool.json("host", "ls")


def nothing_in_the_clear(pool):
    seen = bytes(pool.proxy.seen)
    assert len(seen) > 2 * 4_000_000, len(seen)  # there and back
    assert not frame_in(seen), "the proxy sees a frame"
    for words in (SECRET.encode(), b"x86_64-linux-gnu", b"/bin/cat", SECRET.encode()[5:20]):
        assert words not in seen, f"the proxy sees {words!r}"
    other = Proxy(lambda: pool.port_number)  # that it would see it
    with socket.create_connection(("127.0.0.1", int(other.address.split(":")[1]))) as plain:
        plain.sendall(SECRET.encode())
        assert b"this is not TLS" in plain.recv(4096)
    assert SECRET.encode() in other.seen
    pool.logged("scheduler.log", "refused not TLS")


def strangers_are_refused(pool):
    cases = [  # certificate, name, what the stranger hears, what the scheduler's log says
        (pool.forge("role", "scheduler", "h1"), "h1", "closed: the scheduler refuses our certificate: it is for another role",
         "is for a scheduler, not for a grain server"),
        (pool.forge("old", "grainserver", "h1", 30, 10), "h1", "closed: the scheduler refuses our certificate: it has expired",
         "the certificate of h1 expired on"),
        (pool.forge("key", "grainserver", "h1"), "h1", "Refused: the certificate of host h1 has been revoked",
         "a machine with another key has since joined under that name"),
        (pool.forge("unlisted", "grainserver", "h9"), "h9", "Refused: the certificate of host h9 has been revoked",
         "refused: the certificate of host h9 has been revoked"),
        (os.path.join(pool.base, "h1", "pki"), "h2", "Refused: the certificate of this server names host h1, but the server reports as h2",
         "names host h1, but the server reports as h2"),
    ]
    for directory, name, heard, logged in cases:
        answer = pool.call(directory, name)
        assert heard in answer, f"{directory}: {answer}"
        pool.logged("scheduler.log", logged)
    foreign = pool.forge("foreign", "grainserver", "h1", authority=os.path.join(pool.base, "other-authority"))
    answer = pool.call(foreign, "h1", os.path.join(pool.directory, "pki"))
    assert tells(answer, "closed scheduler refuses our certificate issued another authority"), answer
    pool.logged("scheduler.log", "issued another authority pool's")
    answer = pool.call(foreign, "h1")
    assert tells(answer, "closed certificate scheduler issued another authority"), answer
    answer = pool.call("-", "h1", os.path.join(pool.directory, "pki"))
    assert tells(answer, "ErrorReply host without certificate may not send FirstCall"), answer
    copied = os.path.join(pool.base, "copied")
    shutil.copytree(os.path.join(pool.base, "h1", "pki"), os.path.join(copied, "pki"))
    result = subprocess.run([program("dcs_grainserver"), "--name", "h2", "--dir", copied, "--scheduler",
                             pool.proxy.address, "--run-as", "self"], stderr=subprocess.PIPE, text=True, timeout=300)
    assert result.returncode == 1 and tells(result.stderr, "certificate h1 not h2"), result
    assert pool.host("h1")["connected"] and pool.host("h2")["connected"]


def older_tls_is_refused(pool):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.load_cert_chain(os.path.join(pool.base, "h1", "pki", "certificate.pem"),
                            os.path.join(pool.base, "h1", "pki", "key.pem"))
    with socket.create_connection(("127.0.0.1", pool.port_number)) as plain:
        try:
            context.wrap_socket(plain)
            raise AssertionError("TLS 1.2 was taken")
        except ssl.SSLError as error:
            assert "VERSION" in str(error).upper(), error
    pool.logged("scheduler.log", "peer offers TLS 1.2 older")


def codes_are_for_once(pool):
    used = pool.code("--host", "h1")
    pool.join("h1", *used)
    pool.join("h1", *used)  # a peer that did not hear the answer asks again
    unknown = used[:4] + ["00" * 32] + used[5:]
    assert used[3] == "--token"
    for line, why in ((used, "code already used host h1"), (unknown, "code unknown"),
                      (pool.code("--host", "h2") + ["--host", "h1"], "code host h2 not h1"),
                      (pool.code() + ["--host", "h1"], "host h1 already joined"),
                      (pool.code() + ["--host", "h7"], "not scheduler's host table")):
        result = pool.join("thief", *line, check=False)
        assert result.returncode == 4 and tells(result.stderr, why), (why, result)
        assert not os.path.exists(os.path.join(pool.base, "thief", "pki", "certificate.pem"))
    wrong = pool.code("--host", "h1")
    wrong[wrong.index("--ca-hash") + 1] = "11" * 32
    result = pool.join("thief", *wrong, check=False)
    assert result.returncode == 5 and about(result.stderr, "another authority given hash copy --ca-hash again"), result
    pool.code("--host", "h1", "--ttl", "2h")
    line = pool.code("--host", "h1")
    codes = pool.json("token", "ls")["tokens"]
    assert [c["expires_in_s"] for c in codes] == sorted(c["expires_in_s"] for c in codes), codes
    for token in [t for t in codes if not t["used"] and t["host"] == "h1"]:
        pool.dcs("token", "revoke", token["id"])
    assert tells(pool.join("thief", *line, check=False).stderr, "code unknown")
    short = pool.code("--host", "h1", "--ttl", "1")
    wait_for("the code to expire", lambda: all(t["used"] for t in pool.json("token", "ls")["tokens"] if t["host"] == "h1"))
    assert tells(pool.join("thief", *short, check=False).stderr, "code expired")
    pool.logged("scheduler.log", "audit host 127.0.0.1 refused")
    assert pool.dcs("token", "create", "--host", "h7", check=False).returncode == 3


def hosts_are_approved(pool):
    pool.table("h1", "h2", "h3")
    pool.dcs("reload")
    line = pool.code()
    line = line[:3] + line[line.index("--ca-hash"):] + ["--host", "h3", "--dir", os.path.join(pool.base, "h3")]
    waiting = subprocess.Popen([program("dcs"), *line], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    hosts = wait_for("h3 to ask", lambda: pool.json("host", "approve")["hosts"])
    assert [h["name"] for h in hosts] == ["h3"], hosts
    assert not os.path.exists(os.path.join(pool.base, "h3", "pki", "certificate.pem"))
    result = pool.dcs("host", "approve", "h3", "babab-babab-babab-babab-babab-babab", check=False)
    assert result.returncode == 3, result
    assert pool.dcs("host", "approve", "h3", hosts[0]["key_words"]).stdout == "host h3 approved\n"
    out, err = waiting.communicate(timeout=300)
    assert waiting.returncode == 0 and hosts[0]["key_words"] in err, (out, err)
    assert tells(out, f"host h3 joined pool key {hosts[0]['key_words']}"), out
    pool.start_server("h3")
    pool.wait_active("h3")
    assert pool.json("host", "approve")["hosts"] == []
    pool.logged("scheduler.log", "audit host h3 joined 127.0.0.1 consent")


def removal_revokes_at_once(pool):
    pool.dcs("host", "rm", "h2")
    pool.logged("h2.log", "scheduler refuses server")
    assert pool.host("h2") is None
    table = open(os.path.join(pool.directory, "hosts")).read()
    assert "h2 " not in table and "h1 " in table and table.startswith("# the hosts"), table
    pool.table("h1", "h2", "h3")  # the name may come back, the certificate does not
    pool.dcs("reload")
    answer = pool.call(os.path.join(pool.base, "h2", "pki"), "h2")
    assert tells(answer, "Refused certificate host h2 revoked host must join again"), answer
    pool.logged("h2.log", "certificate host h2 revoked")
    pool.join("h2", *pool.code("--host", "h2"), "--new-key")
    pool.wait_active("h2")  # its server reads the new certificate by itself
    assert pool.dcs("host", "rm", "h7", check=False).returncode == 3


def restarts_forget_nothing(pool):
    line = pool.code("--host", "h1")
    pool.stop("scheduler", signal.SIGKILL)
    pool.start_scheduler()
    pool.wait_active("h1", "h2", "h3")
    pool.join("h1", *line)
    pool.stop("scheduler")
    pool.start_scheduler()
    pool.wait_active("h1", "h2", "h3")
    assert pool.dcs("run", "--", "/bin/echo", "still here").stdout == "still here\n"


def certificates_are_renewed(pool):
    pool.stop("h1")
    path = os.path.join(pool.base, "h1", "pki", "certificate.pem")
    pool.forge("h1/pki", "grainserver", "h1", 80, 90)  # ten days are left
    before = open(path).read()
    pool.start_server("h1")
    wait_for("a new certificate", lambda: open(path).read() != before)
    pool.logged("h1.log", "certificate host renewed")
    pool.wait_active("h1")
    pool.stop("h1")
    pool.forge("h1/pki", "grainserver", "h1", 100, 90)
    result = subprocess.run([program("dcs_grainserver"), "--name", "h1", "--dir", os.path.join(pool.base, "h1"),
                             "--scheduler", pool.proxy.address, "--run-as", "self"], stderr=subprocess.PIPE, text=True, timeout=300)
    assert result.returncode == 1 and tells(result.stderr, "certificate h1 expired"), result


def main():
    with TlsPool() as pool, Hurry(pool):
        for part in (hosts_join_and_work, nothing_in_the_clear, strangers_are_refused, older_tls_is_refused,
                     codes_are_for_once, hosts_are_approved, removal_revokes_at_once, restarts_forget_nothing,
                     certificates_are_renewed):
            part(pool)
            print(part.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main()
