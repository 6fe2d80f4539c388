"""A page for other hosts: TLS, a token, and what hostile readers of the network get."""
import base64
import http.client
import os
import signal
import socket
import ssl
import subprocess
import time

from page_client import samples_of
from pool import Pool, program, wait_for


class Page:
    def __init__(self, pool, *options):
        self.access = os.path.join(pool.base, "access")
        self.process = pool.start([program("dcs"), "page", "--listen", "0.0.0.0:0", "--access", self.access, "--interval", "0.5",
                                   "-o", "name", *options], stdout=subprocess.PIPE)
        url = self.process.stdout.readline().decode().strip()
        assert url.startswith("https://"), url
        self.port = int(url.rstrip("/").rpartition(":")[2])
        self.token = open(os.path.join(self.access, "token")).read().strip()
        self.tls = ssl.create_default_context(cafile=os.path.join(self.access, "certificate.pem"))
        wait_for("the first look at the pool", lambda: self.get("/")[0] == 200)

    def headers(self, token):
        return {} if token is None else {"Authorization": f"Bearer {token}"}

    def get(self, target, token=True, host="localhost", **headers):
        """Status, headers and body."""
        connection = http.client.HTTPSConnection(host, self.port, timeout=60, context=self.tls)
        try:
            connection.request("GET", target, headers={**self.headers(self.token if token is True else token), **headers})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=300)

    def status_of(self, head):
        """The status after these bytes, in TLS."""
        with self.tls.wrap_socket(self.connect(), server_hostname="localhost") as s:
            s.sendall(head)
            return s.recv(4096).split(b"\r\n")[0].decode()

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
        self.process.stdout.close()


def check_token(page):
    for name in ("token", "key.pem"):
        assert os.stat(os.path.join(page.access, name)).st_mode & 0o777 == 0o600
    for path in ("/", "/metrics", "/events", "/page.css", "/hosts", "/session/x/1", "/nothing"):
        for token in (None, "", "wrong", page.token[:-1], page.token + "0", "x" * 5000):
            status, headers, body = page.get(path, token)
            assert status == 401 and headers["WWW-Authenticate"].startswith("Basic realm="), (path, status)
            assert "local1" not in body and "dcs_" not in body
    password = base64.b64encode(f"ann:{page.token}".encode()).decode()
    assert page.get("/", None, Authorization=f"Basic {password}")[0] == 200
    for bad in ("Basic", "Basic !", "Basic " + base64.b64encode(page.token.encode()).decode(), f"Digest {page.token}"):
        assert page.get("/", None, Authorization=bad)[0] == 401, bad
    assert samples_of(page.get("/metrics")[2])["dcs_up"] == 1
    assert "local1" in page.get("/")[2]
    assert page.get("/", host="127.0.0.1")[0] == 200
    for target in (f"/?token={page.token}", f"/{page.token}"):
        assert page.get(target, None)[0] == 401, "a token in an address would be in logs"


def check_refusals(page):
    bearer = f"Authorization: Bearer {page.token}\r\n".encode()
    for host in (b"evil.example", b"localhost.evil.example", b"localhost:x", b""):
        assert " 421 " in page.status_of(b"GET / HTTP/1.1\r\nHost: " + host + b"\r\n" + bearer + b"\r\n"), host
    assert " 405 " in page.status_of(b"POST / HTTP/1.1\r\nHost: localhost\r\n" + bearer + b"\r\n")
    assert " 431 " in page.status_of(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20000 + b"\r\n\r\n")
    assert page.get("/metrics", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})[0] == 403
    with page.connect() as s:  # without TLS
        s.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + bearer + b"\r\n")
        assert b"200" not in s.recv(4096)
    old = ssl.create_default_context(cafile=os.path.join(page.access, "certificate.pem"))
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    try:
        old.wrap_socket(page.connect(), server_hostname="localhost")
        raise AssertionError("TLS 1.2 was accepted")
    except (ssl.SSLError, OSError):
        pass


def open_still(sockets):
    count = 0
    for s in sockets:
        s.setblocking(False)
        try:
            count += s.recv(1) != b""
        except (BlockingIOError, ssl.SSLWantReadError):
            count += 1
        except OSError:
            pass
    return count


def check_crowd(pool, page):
    """Who has no token takes few places and loses them, and takes none of those who have it."""
    kept = http.client.HTTPSConnection("localhost", page.port, timeout=60, context=page.tls)
    def through_kept():
        kept.request("GET", "/metrics", headers=page.headers(page.token))
        answer = kept.getresponse()
        answer.read()
        return answer.status
    assert through_kept() == 200
    silent = [page.connect() for _ in range(400)]
    wait_for("all but a few to be closed", lambda: open_still(silent) <= 16, timeout=240)
    assert through_kept() == 200, "a reader that is there is served"
    wait_for("the silent ones to lose their places", lambda: open_still(silent) == 0, timeout=240)
    drip = page.tls.wrap_socket(page.connect(), server_hostname="localhost")
    ended = False
    for byte in (b"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer " + b"0" * 400):
        try:
            drip.sendall(bytes([byte]))
        except OSError:
            ended = True
            break
        time.sleep(0.25)
    assert ended, "a token that drips in is waited for without end"
    assert page.get("/")[0] == 200
    assert pool.dcs("run", "--", "echo", "still").stdout == b"still\n"
    for s in silent:
        s.close()
    kept.close()


def served_by(page):
    """How many connections the page has, by the kernel."""
    rows = [line.split() for line in open("/proc/net/tcp").readlines()[1:]]
    return sum(row[1].endswith(f":{page.port:04X}") and row[3] == "01" for row in rows)


def check_stalls(page):
    """A handshake that stops in its middle, and readers that read nothing, end by themselves."""
    wait_for("earlier connections to end", lambda: served_by(page) == 0)
    records = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = page.tls.wrap_bio(*records, server_hostname="localhost")
    try:
        client.do_handshake()
    except ssl.SSLWantReadError:
        hello = records[1].read()
    halves = [page.connect() for _ in range(3)]
    for s, size in zip(halves, (1, 40, len(hello) - 1)):
        s.sendall(hello[:size])
    whole = page.connect()  # which never answers the server's part
    whole.sendall(hello)
    request = f"GET / HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {page.token}\r\n\r\n".encode()
    deaf = []
    for _ in range(4):
        s = page.tls.wrap_socket(page.connect(), server_hostname="localhost")
        s.settimeout(1)
        try:
            s.sendall(request * 900)  # with answers of several megabytes
        except OSError:
            pass  # the page does not read either while it writes
        deaf.append(s)
    assert page.get("/")[0] == 200, "others are served meanwhile"
    wait_for("stalled handshakes to end", lambda: open_still(halves) == 0, timeout=240)
    wait_for("the other stalled handshake, and readers that read nothing, to end", lambda: served_by(page) == 0, timeout=180)
    for s in [*halves, whole, *deaf]:
        s.close()


def check_mistakes(pool, page):
    def refused(*options):
        result = pool.dcs("page", *options, check=False)
        assert result.returncode != 0
        return result.stderr.decode()
    assert "--access" in refused("--listen", "0.0.0.0:80")
    assert "--listen ADDRESS:PORT" in refused("--access", page.access)
    assert "--metrics" in refused("--listen", "0.0.0.0:0", "--access", page.access, "--metrics", "all")
    token = os.path.join(page.access, "token")
    os.chmod(token, 0o644)
    assert "can be read by other users" in refused("--listen", "0.0.0.0:0", "--access", page.access)
    os.chmod(token, 0o600)
    with open(token, "w") as f:
        f.write("short\n")
    assert "20 to 256 characters" in refused("--listen", "0.0.0.0:0", "--access", page.access)
    os.remove(os.path.join(page.access, "key.pem"))
    assert "only one of" in refused("--listen", "0.0.0.0:0", "--access", page.access)


with Pool(servers=1, slots=1) as pool:
    page = Page(pool)
    check_token(page)
    check_refusals(page)
    check_crowd(pool, page)
    check_stalls(page)
    page.end()
    again = Page(pool)
    assert again.token == page.token
    check_mistakes(pool, again)
    again.end()
print("a page for other hosts is for those who have its token")
