"""Control programs of other hosts: they work over TLS, killed or not, also while the scheduler is away; and no other peer does
with what he could have got hold of. The part of dcs_begin is played by remote_peer.py; begin_remote.py has the real one."""
import contextlib
import json
import os
import re
import signal
import socket
import ssl
import subprocess
import tempfile
import time

from begin_world import LIBC, Hole
from hurry import Hurry
from pool import frame_in, tells, wait_for
from remote_peer import (AUTH_REPLY, BEGUN, BEGIN_CONTROL, CLOSE, DONE, ERROR, GET_AUTH, GKILL, HELLO, OPEN_REPLY, PROTOCOL,
                         QUERY, QUERY_REPLY, WELCOME, Credentials, Line, RemotePool, frame, query, struct, text)
from tls import SECRET, files_below

REFUSED, NO_AUTH, LIST_TOKENS = 4, 3, 52


def hosts_join(pool):
    joined = pool.join_client("desk1")
    assert tells(joined.stdout, "host desk1 joined pool") and "dcs_begin PROGRAM" in joined.stdout, joined
    folder = os.path.join(pool.base, "desk1")
    assert os.stat(os.path.join(folder, "pki", "key.pem")).st_mode & 0o777 == 0o600
    assert os.stat(os.path.join(folder, "pool.conf")).st_mode & 0o777 == 0o644
    lines = [line for line in open(os.path.join(folder, "pool.conf")).read().splitlines() if not line.startswith("#")]
    assert lines == [f"scheduler {pool.proxy.address}", f"pki {folder}/pki"], lines
    pool.join_client("desk1")  # a peer that did not hear the answer asks again
    member = {row["name"]: row for row in json.loads(pool.dcs("host", "ls", "-o", "json").stdout)["members"]}["desk1"]
    assert member["joined"] and abs(member["joined_s"] - time.time()) < 86400 and member["role"] == "client", member
    assert 80 * 86400 < member["expires_s"] - member["joined_s"] < 91 * 86400, member
    pool.join_client("desk2")
    assert pool.dcs("host", "ls", "desk1", "desk2").stdout.splitlines()[1].startswith("desk1  client  joined  "), pool
    assert pool.dcs("host", "drain", "desk1", check=False).returncode == 3
    for line, why in ((pool.client_code("--host", "desk1") + ["--host", "desk2"], "code host desk1 not desk2"),
                      (pool.code("--host", "h1") + ["--role", "client"], "code host grain server"),
                      ([w for w in pool.client_code() if w not in ("--role", "client")], "host of control programs"),
                      (pool.client_code() + ["--host", "h1"], '"h1" is not in the scheduler\'s host table as a host of')):
        result = pool.dcs(*line, "--dir", os.path.join(pool.base, "thief"), check=False)
        assert result.returncode == 4 and tells(result.stderr, why), (why, result)
    result = pool.dcs("token", "create", "--role", "client", "--host", "h1", check=False)
    assert result.returncode == 3 and "role=client" in result.stderr, result
    other = pool.client_code("--host", "desk1")
    other[2] = "127.0.0.1:1"
    result = pool.dcs(*other, "--dir", folder, check=False)
    assert result.returncode == 4 and "names another scheduler" in result.stderr, result


def hosts_renew(pool):
    folder = os.path.join(pool.base, "desk1")
    path = os.path.join(folder, "pki", "certificate.pem")
    before, key = open(path).read(), open(os.path.join(folder, "pki", "key.pem")).read()
    os.chmod(path, 0o640)
    renew = lambda *more, **options: pool.dcs("host", "renew", "--dir", folder, *more, **options)
    assert "is valid until" in renew().stdout and open(path).read() == before
    assert tells(renew("--now").stdout, "host desk1 new certificate") and open(path).read() != before
    assert os.stat(path).st_mode & 0o777 == 0o640 and open(os.path.join(folder, "pki", "key.pem")).read() == key
    assert sorted(os.listdir(os.path.dirname(path))) == ["authority.pem", "certificate.pem", "key.pem"]
    told = pool.dcs("host", "renew", "--dir", os.path.join(pool.base, "nowhere"), check=False)
    assert told.returncode != 0 and tells(told.stderr, "names no scheduler another host"), told


def programs_work(pool):
    for name in ("h1", "h2"):
        pool.join(name)
        pool.start_server(name)
    pool.wait_active("h1", "h2")
    inputs = [f"{SECRET}-{i}" for i in range(20)]
    ann = pool.begin("desk1", "ann")
    out = pool.run(ann, "map", "--", "/bin/sh", "-c", "echo out-{}", data="\n".join(inputs) + "\n").stdout
    assert out.splitlines() == ["out-" + i for i in inputs], out
    big = SECRET * 100_000
    assert pool.run(pool.begin("desk1", "ann"), "run", "--", "/bin/cat", data=big).stdout == big
    out = pool.run(pool.begin("desk1", "ann"), "session", "ls", "-o", "json").stdout
    assert '"user":"ann"' in out.replace(" ", ""), out
    for path, content in files_below(pool.directory):
        assert ann.token not in content and ann.token.hex().encode() not in content, f"{path} holds the token"
    assert ann.token.hex() not in pool.text("scheduler.log")
    pool.logged("scheduler.log", "ann begins control program dcs host desk1")
    pool.logged("scheduler.log", "issued control program ann/desk1/dcs")


def one_of_two_answers(pool):
    """The first address of a name has its share of the time, and leaves the second one the rest."""
    ann = pool.begin("desk1", "ann")
    port = int(ann.address.rsplit(":", 1)[1])
    if len({at[4][0] for at in socket.getaddrinfo("localhost", port, type=socket.SOCK_STREAM)} & {"::1", "127.0.0.1"}) < 2:
        return
    with contextlib.closing(Hole("::1", port)):
        ann.address = f"localhost:{port}"
        assert pool.run(ann, "session", "ls", "-o", "name", env={"DCS_PATIENCE_S": "10"}).returncode == 0


def nothing_in_the_clear(pool):
    seen = bytes(pool.proxy.seen)
    assert len(seen) > 4_000_000, len(seen)
    assert frame_in(seen + frame(HELLO, b"")) and not frame_in(seen), "the proxy sees a frame"
    for words in (SECRET.encode(), b"/bin/cat", b"out-" + SECRET[:8].encode()):
        assert words not in seen, f"the proxy sees {words!r}"


def killed_and_rerun(pool):
    """The scheduler dies while a program works and waits; the program dies; its rerun goes on from there. Gates stop the grains
    so that some are left to run after each death, however late this test sees the others."""
    trace, gate3, gate8 = (os.path.join(pool.base, name) for name in ("trace", "gate3", "gate8"))
    inputs = "".join(f"{i}\n" for i in range(12))
    words = ("map", "--", "/bin/sh", "-c", f"echo ran $0 >>{trace}; for n in 3 8; do until test $0 -lt $n || test -e {pool.base}/gate$n; do "
             "sleep 0.1; done; done; echo result $0", "{}")
    ran = lambda: open(trace).read().splitlines() if os.path.exists(trace) else []
    first = pool.start_program(pool.begin("desk1", "ann"), *words, stdin=-1)
    first.stdin.write(inputs)
    first.stdin.close()
    wait_for("some grains", lambda: len(ran()) >= 2, 240)
    pool.stop("scheduler", signal.SIGKILL)
    time.sleep(1)
    pool.start_scheduler()
    before = len(ran())
    open(gate3, "w").close()
    wait_for("more grains after the scheduler's death", lambda: len(ran()) > before + 1, 240)
    first.send_signal(signal.SIGKILL)
    first.wait()
    assert len(set(ran())) < 12, "all was done before the program was killed; nothing is left to resume"
    open(gate8, "w").close()
    second = pool.start_program(pool.begin("desk1", "ann"), *words, stdin=-1)
    second.stdin.write(inputs)
    second.stdin.close()
    second.stdin = None
    pool.stop("scheduler", signal.SIGKILL)
    pool.start_scheduler()
    out, err = second.communicate(timeout=240)
    assert second.returncode == 0, (out, err)
    assert out.splitlines() == [f"result {i}" for i in range(12)], (out, err)
    # What ran before was not run again, but for what the killed scheduler had not heard of.
    assert {line.split()[1] for line in ran()} == {str(i) for i in range(12)} and len(ran()) <= 12 + 4, ran()


def waits_for_ever(pool):
    """A parked d_gwait survives the scheduler's restart, and an expiring certificate by renewal."""
    ann = pool.begin("desk1", "ann", "waiter")
    aged = pool.reforged(ann, "ann/desk1/waiter", 3, 4)  # a day of four is left: due
    gate = os.path.join(pool.base, "gate")
    waiting = pool.start_program(aged, "run", "--", "/bin/sh", "-c", f"while ! test -e {gate}; do sleep 0.1; done; echo through")
    issued = lambda: pool.text("scheduler.log").count("issued to control program ann/desk1/waiter")
    wait_for("the certificate to be renewed", lambda: issued() == 2, 120)  # dcs_begin's, and this one
    pool.stop("scheduler", signal.SIGKILL)
    pool.start_scheduler()
    pool.wait_active("h1", "h2")
    assert waiting.poll() is None, waiting.communicate()
    open(gate, "w").close()
    out, err = waiting.communicate(timeout=240)
    assert waiting.returncode == 0 and out == "through\n", (out, err)


def refused(answer, words, code=None):
    assert answer[0] == ERROR and tells(answer[2], words) and code in (None, answer[1]), (words, answer)


def opened(answer):
    assert answer[0] == OPEN_REPLY, answer


def others_are_refused(pool):
    ann, ben, root = pool.begin("desk1", "ann"), pool.begin("desk1", "ben"), pool.begin("desk2", "root")
    with ann.line() as line:
        opened(line.session(5001))
    mixed = Credentials(ben.address, ben.directory, ann.token, ben.authority)  # ann's token got about
    with mixed.line() as line:
        refused(line.session(5001), "not one ben")
        refused(line.ask(GET_AUTH, text("x")), "not one ben")
        refused(line.ask(QUERY, query()), "not one ben")
    again = pool.begin("desk1", "ann")
    mixed = Credentials(again.address, again.directory, ann.token, again.authority)
    with mixed.line() as line:
        refused(line.session(5001), "belongs another key connection's certificate")
    elsewhere = pool.begin("desk2", "ann")
    mixed = Credentials(elsewhere.address, elsewhere.directory, ann.token, elsewhere.authority)
    with mixed.line() as line:
        refused(line.session(5001), "control program host desk1 but one runs host desk2")
    with ann.line(hello=False) as line:
        assert line.hello()[0] == WELCOME
        refused(line.ask(QUERY, query()), "carries no authorization token")
    with Line(ann.address, ann.directory) as line:
        assert line.hello(bytes(32))[0] == WELCOME
        refused(line.ask(QUERY, query()), "authorization token unknown")
    with ben.line() as line:  # ben with all that is his
        kind, payload = line.ask(QUERY, query(2))
        assert kind == QUERY_REPLY and b"\x03\x00\x00\x00ann" not in payload, payload
        refused(line.ask(CLOSE, text("ann") + struct.pack("<ii", 5001, -1)), "may not do session ann")
        refused(line.ask(GKILL, text("ann") + struct.pack("<ii", 5001, 1)), "may not do session ann")
        opened(line.session(5001))  # ben's own of that number
    with root.line() as line:  # root of another host is no peer here
        refused(line.ask(CLOSE, text("ann") + struct.pack("<ii", 5001, -1)), "may not do session ann")
    pool.dcs("token", "ls")  # of this host he is a peer
    with root.line() as line:
        refused(line.ask(LIST_TOKENS, b""), "for root, scheduler's account")


def hosts_are_judged(pool):
    _, key = pool.new_key()
    for host, user, ident, why in (("desk1", "root", "x", "lets in all but root"), ("desk2", "ben", "x", "does not list user"),
                                   ("desk1", "../ann", "x", "login name cannot used"),
                                   ("desk1", "ann", "-x", "control ident must be"),
                                   (pool.forge("new", "client", "desk1"), "ann", "x", "another key since joined under name"),
                                   (pool.forge("unlisted", "client", "desk9"), "ann", "x", "has been revoked")):
        refused(pool.ask_begin(host, user, ident, key), why)
    refused(pool.ask_begin("desk1", "ann", "x", key[:-1]), "not public key curve P-256")
    refused(pool.ask_begin("desk1", "ann", "x", key + b"x"), "not public key curve P-256")
    answer = pool.ask_begin(os.path.join(pool.base, "h1", "pki"), "ann", "x", key)  # a grain server may not
    assert answer[0] != BEGUN, answer
    desk = os.path.join(pool.base, "desk1", "pki")
    with Line(pool.proxy.address, desk) as line:
        refused(line.hello(), "dcs_begin another host must not send Hello")
    with Line(pool.proxy.address) as line:
        refused(line.ask(BEGIN_CONTROL, struct.pack("<H", PROTOCOL) + text("ann") + text("x") + text(key)),
                "host without certificate may not send BeginControl")
    program = pool.begin("desk1", "ann")
    with program.line() as line:  # programs beget none
        refused(line.ask(BEGIN_CONTROL, struct.pack("<H", PROTOCOL) + text("ann") + text("x") + text(key)),
                "BeginControl is not a request of a control program")
    pool.logged("scheduler.log", "audit no control program another host begins asked host desk2")


def certificates_are_judged(pool):
    ann = pool.begin("desk1", "ann")
    old = pool.reforged(ann, "ann/desk1/dcs", 30, 10)
    result = pool.run(old, "session", "ls", check=False)
    assert result.returncode != 0 and "it has expired" in result.stderr, result
    pool.logged("scheduler.log", "certificate ann/desk1/dcs expired")
    foreign = Credentials(ann.address, pool.new_key()[0], ann.token, ann.authority)
    result = pool.run(foreign, "session", "ls", check=False)
    assert result.returncode != 0 and "issued by another authority" in result.stderr, result
    other = ssl.DER_cert_to_PEM_cert(ssl.PEM_cert_to_DER_cert(open(os.path.join(foreign.directory, "authority.pem")).read()))
    deceived = Credentials(ann.address, ann.directory, ann.token, other)  # whom the program believes
    result = pool.run(deceived, "session", "ls", check=False)
    assert result.returncode != 0 and "issued by another authority" in result.stderr, result
    renamed = pool.reforged(ann, "ben/desk1/dcs", 0, 1)  # only the pool's authority could; the token counts still
    result = pool.run(renamed, "session", "ls", check=False)
    assert result.returncode != 0 and tells(result.stderr, "not one ben"), result
    for words, why in (("nonsense", "DCS_AUTH_FD"),):
        broken = Credentials(ann.address, ann.directory, b"", ann.authority)
        result = pool.run(broken, "session", "ls", check=False)
        assert result.returncode != 0 and why in result.stderr, result


def connections_are_judged(pool):
    ann = pool.begin("desk1", "ann")
    try:
        Line(ann.address, ann.directory, ssl.TLSVersion.TLSv1_2)
        raise AssertionError("TLS 1.2 was taken")
    except ssl.SSLError as error:
        assert "VERSION" in str(error).upper(), error
    port = int(ann.address.split(":")[1])
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.sendall(b"DCS1" + bytes(60))
        assert b"this is not TLS" in plain.recv(4096)
    # What went over the wire once says nothing a second time.
    seen = len(pool.proxy.seen)
    with ann.line() as line:
        opened(line.session(5002))
        assert line.ask(CLOSE, text("") + struct.pack("<ii", 5002, -1))[0] == DONE
    with ann.line() as line:
        opened(line.session(5002, 2))
    recorded = bytes(pool.proxy.seen[seen:])
    with socket.create_connection(("127.0.0.1", port)) as plain:
        plain.settimeout(60)
        plain.sendall(recorded[:8192])
        answer = b""
        try:
            while piece := plain.recv(65536):
                answer += piece
        except OSError:
            pass
    row = [s for s in pool.json("session", "ls", "ann/5002")["sessions"]]
    assert row[0]["state"] == "active", row  # the recorded close was not carried out again


def hosts_are_revoked(pool):
    gate = os.path.join(pool.base, "gate2")
    parked = pool.start_program(pool.begin("desk1", "ann", "parked"), "run", "--", "/bin/sh", "-c",
                                f"while ! test -e {gate}; do sleep 0.1; done",
                                env={"DCS_PATIENCE_S": "3"})
    wait_for("the grain", lambda: any(s["user"] == "ann" and s["running"] for s in pool.json("session", "ls", "all")["sessions"]), 240)
    ann = pool.begin("desk1", "ann")
    with ann.line() as line:
        pool.table("h1", "h2", sources="desk2 role=client users=ann,root\n")
        pool.dcs("reload")
        assert line.session(7003)[0] is None  # its line ended
    with ann.line() as line:
        refused(line.session(7003), "control programs may not call host desk1", REFUSED)
    out, err = parked.communicate(timeout=240)
    assert parked.returncode != 0 and tells(err, "may not call host desk1"), (out, err)
    pool.table("h1", "h2")
    pool.dcs("reload")
    with ann.line() as line:  # as if nothing had been
        opened(line.session(7003))
        pool.dcs("host", "rm", "desk1")
        assert line.session(7003)[0] is None
    assert "desk1" not in open(os.path.join(pool.directory, "hosts")).read()
    pool.table("h1", "h2")
    pool.dcs("reload")
    with ann.line() as line:
        refused(line.session(7003), "was removed from pool")
    refused(pool.ask_begin("desk1", "ann", "x", pool.new_key()[1]), "revoked host must join again")
    told = pool.dcs("host", "renew", "--now", "--dir", os.path.join(pool.base, "desk1"), check=False)
    assert told.returncode == 4 and tells(told.stderr, "revoked host must join again"), told
    pool.stop("scheduler", signal.SIGKILL)
    pool.start_scheduler()
    with ann.line() as line:
        refused(line.session(7003), "was removed from pool")
    pool.join_client("desk1", "--new-key")
    with ann.line() as line:  # what programs had before does not come back with the host
        refused(line.session(7003), "authorization token unknown", NO_AUTH)
    with pool.begin("desk1", "ann", "dcs").line() as line:
        opened(line.session(7003))  # the session does
    open(gate, "w").close()


def two_addresses():
    """Of localhost, in a mount namespace of the test; only root can have them."""
    if os.getuid() != 0 or LIBC.unshare(0x20000) != 0:
        return
    with tempfile.NamedTemporaryFile("w") as hosts:
        hosts.write(open("/etc/hosts").read() + "::1 localhost\n")
        hosts.flush()
        for words in (["--make-rprivate", "/"], ["--bind", hosts.name, "/etc/hosts"]):
            subprocess.run(["mount", *words], check=True)


def main():
    two_addresses()
    with RemotePool() as pool, Hurry(pool):
        for part in (hosts_join, hosts_renew, programs_work, one_of_two_answers, nothing_in_the_clear, killed_and_rerun, waits_for_ever, others_are_refused,
                     hosts_are_judged, certificates_are_judged, connections_are_judged, hosts_are_revoked):
            part(pool)
            print(part.__name__.replace("_", " "), flush=True)


if __name__ == "__main__":
    main()
