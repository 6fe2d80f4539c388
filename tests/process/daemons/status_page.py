"""The page of a pool: what it shows and to whom, what it refuses, and that the pool does not notice who looks."""
import http.client
import json
import os
import pwd
import re
import resource
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

from page_client import Events, samples_of
from pool import ROOT, Pool, program, wait_for

ME = pwd.getpwuid(os.getuid()).pw_name


class Page:
    """A `dcs page` of a pool."""

    def __init__(self, pool, *options):
        self.process = pool.start([program("dcs"), "page", "--listen", "0", "--interval", "0.5", "-o", "json", *options],
                                  stdout=subprocess.PIPE)
        self.url = json.loads(self.process.stdout.readline())["url"]
        self.port = int(re.fullmatch(r"http://127\.0\.0\.1:(\d+)/", self.url)[1])
        wait_for("the first look at the pool", lambda: self.get("/")[0] == 200)
        self.watcher = Events(self)  # without one the page looks at the pool rarely

    def get(self, target, method="GET", **headers):
        """Status, headers and body."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=300)
        try:
            connection.request(method, target, headers=headers)
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read().decode()
        finally:
            connection.close()

    def raw(self, data):
        """The first line of the answer to these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=300) as s:
            s.sendall(data)
            got = b""
            while b"\r\n" not in got:
                more = s.recv(65536)
                if not more:
                    break
                got += more
            return got.split(b"\r\n")[0].decode()

    def metrics(self):
        return samples_of(self.get("/metrics")[2])

    def end(self):
        self.watcher.close()
        self.process.send_signal(signal.SIGTERM)
        assert self.process.wait(60) == 0
        self.process.stdout.close()


def sequence(event_id):
    return int(event_id.rpartition("-")[2])


def check_headers(page):
    status, headers, body = page.get("/")
    assert status == 200 and headers["Content-Type"].startswith("text/html")
    assert re.search(r"\d, protocol forms \d+ to \d+<", body), body
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert headers["X-Content-Type-Options"] == "nosniff" and headers["Cache-Control"] == "no-store"
    assert not re.search(r"<script(?! src=)|<style|\sstyle=|\son[a-z]+=|https?://(?!www\.w3\.org)", body), "inline, or from outside"
    status, head, nothing = page.get("/", method="HEAD")
    assert status == 200 and nothing == "" and int(head["Content-Length"]) > 1000
    for path, kind in (("/page.css", "text/css"), ("/page.js", "text/javascript"), ("/icon.svg", "image/svg+xml")):
        status, headers, text = page.get(path)
        assert status == 200 and headers["Content-Type"].startswith(kind) and text
    for path in ("/nothing", "/session/x", "/grain/a/b/c", "/../etc/passwd", "/%2e%2e/x", "/host/nobody-knows"):
        assert page.get(path)[0] == 404, path


def check_refusals(page):
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "PATCH"):
        status, headers, _ = page.get("/", method=method)
        assert status == 405 and headers["Allow"] == "GET, HEAD", method
    for host in ("evil.example", "127.0.0.1.evil.example", "localhost.evil.example:80", "localhost:x", ""):
        assert " 421 " in page.raw(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode()), host
    assert " 421 " in page.raw(b"GET / HTTP/1.1\r\n\r\n")
    assert " 421 " in page.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n")
    assert " 200 " in page.raw(b"GET / HTTP/1.1\r\nHost: localhost:1\r\n\r\n"), "a forwarded port is another one"
    for site in ("cross-site", "same-site"):
        assert page.get("/metrics", **{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "no-cors"})[0] == 403, site
        assert page.get("/events", **{"Sec-Fetch-Site": site, "Sec-Fetch-Mode": "cors"})[0] == 403, site
    assert page.get("/page.css", **{"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "no-cors"})[0] == 200
    assert page.get("/", **{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})[0] == 200
    assert " 431 " in page.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: " + b"a" * 20000 + b"\r\n\r\n")
    try:
        assert " 431 " in page.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"X: " + b"a" * (1 << 20) + b"\r\n\r\n")
    except OSError:
        pass  # the connection ends before all of it is sent
    assert page.get("/")[0] == 200
    assert " 400 " in page.raw(b"nonsense\r\n\r\n")
    assert " 400 " in page.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhello")
    assert " 400 " in page.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
    assert " 421 " in page.raw(b"GET http://localhost/ HTTP/1.1\r\nHost: evil.example\r\n\r\n")
    assert " 431 " in page.raw(b"GET / HTTP/1.1\r\nHost: localhost\r\n" + b"A: b\r\n" * 1500 + b"\r\n"), "many small header fields"


def check_contents(pool, page):
    pool.dcs("map", "--new", "--", "sh", "-c", "exit $1", "sh", data=b"0\n0\n0\n3\n", check=False)
    evil = "<script>alert('x')</script>\"&"
    running = pool.start([program("dcs"), "run", "--", "sh", "-c", f"sleep 3600 # {evil}"], stdout=subprocess.DEVNULL)
    try:
        session = wait_for("the grain to run", lambda: [s for s in pool.json("session", "ls")["sessions"] if s["running"]])[0]
        number = session["session"]
        text = wait_for("the session to appear", lambda: (lambda b: b if f"{ME}/{number}" in b else "")(page.get("/")[2]))
        assert "local1" in text and "local2" in text and "<script>alert" not in text
        status, _, body = page.get(f"/session/{ME}/{number}")
        assert status == 200 and f"/grain/{ME}/{number}/1" in body
        assert "sleep 3600" in body.partition("table of grains")[2], "which command a grain is"
        items = page.get(f"/session/{ME}/1")[2].partition("table of grains")[2]
        assert ">3</span>" in items and ">0</span>" in items, "which input of dcs map a grain is"
        body = wait_for("the grain to run", lambda: (lambda b: b if "it runs on" in b else "")(page.get(f"/grain/{ME}/{number}/1")[2]))
        assert "&lt;script&gt;alert" in body and "<script>alert" not in body
        for picture in ("time", "flow"):
            assert f'src="/{picture}/{ME}/{number}"' in page.get(f"/session/{ME}/{number}")[2]
            status, headers, svg = page.get(f"/{picture}/{ME}/{number}")
            assert status == 200 and headers["Content-Type"] == "image/svg+xml" and svg.startswith("<svg ")
            assert "sandbox" in headers["Content-Security-Policy"] and "script-src" not in headers["Content-Security-Policy"]
        assert page.get(f"/grain/{ME}/{number}/99")[0] == 404 and page.get(f"/session/{ME}/99")[0] == 404
        for path in ("/sessions", "/hosts", "/host/local1", f"/sessions?user={ME}&state=active", "/hosts?state=trouble"):
            assert page.get(path)[0] == 200, path
        assert "no such session" in page.get("/sessions?user=nobody")[2].lower()
        wait_for("the time line to show the run", lambda: f"{ME}/{number}:1 on local" in page.get("/")[2])
        check_metrics(page)
    finally:
        running.send_signal(signal.SIGINT)
        running.wait()


def check_metrics(page):
    metrics = wait_for("the figures of four ends", lambda: (lambda m: m if m['dcs_grain_finishes_total{result="failed"}'] else 0)(page.metrics()))
    assert metrics["dcs_up"] == 1 and metrics['dcs_hosts{class="0x1",state="active"}'] == 2
    assert metrics['dcs_grain_finishes_total{result="finished"}'] == 3 and metrics['dcs_grains{state="failed"}'] == 1
    assert metrics['dcs_slots{class="0x1",state="busy"}'] + metrics['dcs_slots{class="0x1",state="free"}'] == 4
    for kind in ("submit", "wait", "query", "change", "report"):
        assert metrics[f'dcs_request_duration_seconds_count{{call="{kind}"}}'] > 0, kind
    assert metrics["dcs_store_commit_duration_seconds_count"] > 0 and metrics["dcs_ready_queue_oldest_seconds"] == 0
    assert metrics['dcs_grain_runtime_seconds_bucket{le="+Inf"}'] == metrics["dcs_grain_runtime_seconds_count"]
    assert abs(metrics["dcs_page_last_answer_timestamp_seconds"] - time.time()) < 3600
    _, headers, text = page.get("/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert headers["Content-Type"].startswith("application/openmetrics-text") and text.endswith("# EOF\n")
    assert samples_of(text).keys() == metrics.keys()
    labels = {label for key in metrics for label in re.findall(r'([a-z]+)="', key)}
    assert metrics["dcs_store_disk_bytes"] >= metrics["dcs_store_free_bytes"] > 0
    assert all(n == 0 for key, n in metrics.items() if key.startswith("dcs_problems")), "a healthy pool"
    assert labels == {"class", "state", "host", "version", "result", "reason", "le", "kind", "call"} - ({"reason"} - labels), labels


def check_stream(page):
    first = Events(page)
    event, panels = first.next()
    assert set(panels) >= {"head", "hosts", "sessions", "time", "moves", "load", "events"}, "a new reader gets all"
    later, changed = first.next()
    assert sequence(later) > sequence(event) and "head" in changed and "moves" not in changed, changed.keys()
    first.close()
    again = Events(page, last_id=later)
    event, changed = again.next()
    assert sequence(event) > sequence(later) and "moves" not in changed, "only what has changed since"
    again.close()
    other = Events(page, last_id="4711-3")
    assert "moves" in other.next()[1], "the id of another process means nothing"
    other.close()
    by_query = Events(page, query="?since=" + event)
    assert "moves" not in by_query.next()[1]
    by_query.close()


def check_crowd(pool, page):
    """Fifty browsers are shown the same looks; slow readers and silent connections end nothing but themselves."""
    before, begun = page.metrics()["dcs_page_looks_total"], time.monotonic()
    browsers = [Events(page) for _ in range(50)]
    ids = [[sequence(b.next()[0]) for _ in range(4)] for b in browsers]
    looks = page.metrics()["dcs_page_looks_total"] - before
    assert looks <= (time.monotonic() - begun) / 0.5 + 3, "a look for each browser?"
    assert max(map(max, ids)) <= before + looks + 1
    slow = [Events(page) for _ in range(20)]  # which never read again
    silent = []
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    for _ in range(min(10_000, most - 500)):
        s = socket.socket()
        s.settimeout(60)
        s.connect(("127.0.0.1", page.port))
        silent.append(s)
    wait_for("all but some to be closed", lambda: sum(map(peek, silent)) <= 256, timeout=240)
    assert pool.dcs("run", "--", "echo", "still").stdout == b"still\n"
    assert browsers[0].next()[0], "those that were there are served"
    for s in silent:
        s.close()
    for b in browsers + slow:
        b.close()
    wait_for("the page to answer again", lambda: page_answers(page))
    wait_for("the watchers to be gone", lambda: page.metrics()["dcs_page_watchers"] == 1)


def page_answers(page):
    try:
        return page.get("/")[0] == 200
    except (OSError, http.client.HTTPException):
        return False


def peek(s):
    """Whether the other end has left it open."""
    s.setblocking(False)
    try:
        return s.recv(1) != b""
    except BlockingIOError:
        return True
    except OSError:
        return False


def check_other_users(pool, page):
    if os.getuid() != 0:
        print("not root: other users are not tried")
        return
    code = ("import os, sys, http.client\n"
            "os.setgid(65534); os.setuid(65534)\n"
            "c = http.client.HTTPConnection('127.0.0.1', int(sys.argv[1]), timeout=300)\n"
            "c.request('GET', sys.argv[2]); print(c.getresponse().status)\n")

    def status(port, path):
        return int(subprocess.run([sys.executable, "-c", code, str(port), path], stdout=subprocess.PIPE, check=True).stdout)
    for path in ("/", "/metrics", "/events", "/page.css", f"/session/{ME}/1"):
        assert status(page.port, path) == 403, path
    page.end()
    wide = Page(pool, "--metrics", "all")
    assert status(wide.port, "/metrics") == 200 and status(wide.port, "/") == 403 and status(wide.port, "/events") == 403
    hold = ("import os, socket, sys\n"
            "os.setgid(65533); os.setuid(65533)\n"
            "silent = [socket.create_connection(('127.0.0.1', int(sys.argv[1]))) for i in range(40)]\n"
            "print(flush=True); sys.stdin.read()\n")
    holder = subprocess.Popen([sys.executable, "-c", hold, str(wide.port)], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert holder.stdout.readline() and status(wide.port, "/metrics") == 200, "one user takes no places of another"
    holder.kill()
    holder.wait()
    wide.end()


def check_shared_pool():
    """In a pool of several users each page shows what its own user may see."""
    if os.getuid() != 0:
        return
    base = tempfile.mkdtemp(prefix="dcs-test-")
    pool, scheduler = os.path.join(base, "pool"), os.path.join(base, "pool/scheduler")
    os.makedirs(scheduler)
    for folder in (base, pool, scheduler):
        os.chmod(folder, 0o755)
    with open(os.path.join(scheduler, "hosts"), "w") as f:
        f.write("h1 class=0x1 slots=1\n")
    command = shutil.copy(program("dcs"), os.path.join(base, "dcs"))
    started = [subprocess.Popen([program("dcs_scheduler"), "--dir", scheduler, "--hosts", os.path.join(scheduler, "hosts"),
                                 "--group", "nogroup"], stderr=subprocess.DEVNULL)]
    env = dict(os.environ, DCS_DIR=pool)
    try:
        wait_for("the scheduler", lambda: subprocess.run([command, "host", "ls"], env=env, capture_output=True).returncode == 0)
        started.append(subprocess.Popen([command, "map", "--label", "secret-label", "--", "echo", ":::", "secret-word"], env=env,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
        wait_for("its grain", lambda: b'"ready":1' in subprocess.run([command, "status", "-o", "json"], env=env,
                                                                     capture_output=True).stdout)
        page = Page.__new__(Page)
        for user in (0, 65534):
            page.process = subprocess.Popen([command, "page", "--listen", "0", "-o", "name"], env=env, user=user, group=user,
                                            extra_groups=[65534], cwd="/", stdout=subprocess.PIPE)
            started.append(page.process)
            page.port = int(page.process.stdout.readline().decode().strip().rstrip("/").rpartition(":")[2])
            text = wait_for("the session", lambda: (lambda b: b if f"{ME}/1" in b else "")(page.get("/")[2]))
            pages = [page.get(f"/{kind}/{ME}/1{rest}") for kind, rest in (("session", ""), ("grain", "/1"), ("time", ""), ("flow", ""))]
            own = user == 0
            assert [p[0] for p in pages] == ([200] * 4 if own else [200, 403, 403, 403]), [p[0] for p in pages]
            whole = text + "".join(p[2] for p in pages)
            assert ("secret-label" in whole) == own and ("secret-word" in whole) == own
            assert ("Without sessions of other users" in text) != own
    finally:
        for process in reversed(started):
            process.kill()
            process.wait()
            if process.stdout:
                process.stdout.close()
        shutil.rmtree(base)


def check_socket(pool):
    path = os.path.join(pool.base, "page.sock")
    for _ in range(2):  # the second one finds what the first one, killed, has left
        process = pool.start([program("dcs"), "page", "--listen", path, "-o", "name"], stdout=subprocess.PIPE)
        assert process.stdout.readline().decode().strip() == "unix:" + path
        with socket.socket(socket.AF_UNIX) as s:
            s.connect(path)
            s.sendall(b"GET /page.css HTTP/1.1\r\nHost: localhost\r\n\r\n")
            assert b" 200 " in s.recv(64)
        process.kill()
        process.wait()
        process.stdout.close()
    assert pool.dcs("page", "--listen", "0.0.0.0:80", check=False).returncode == 2
    assert pool.dcs("page", "--listen", os.path.join(pool.dir, "pool"), check=False).returncode != 0
    assert os.path.getsize(os.path.join(pool.dir, "pool")) > 0, "a file is not taken for an old socket"


def check_rules(page):
    """Every figure that a rule or the dashboard asks for is there, and every alert has its section."""
    text = wait_for("the figures of the copy", lambda: (lambda t: t if "store_copy_lag" in t else "")(page.get("/metrics")[2]))
    known = set(re.findall(r"^# TYPE (\S+)", text, re.M))
    rules = open(os.path.join(ROOT, "deploy/prometheus/alerts.yml")).read()
    dashboard = json.load(open(os.path.join(ROOT, "deploy/grafana/dcs.json")))
    queries = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    asked = set(re.findall(r"\b(?:dcs|process)_[a-z_]+", rules + " ".join(queries)))
    asked = {re.sub(r"_(bucket|count)$", "", name) for name in asked}
    known.add("dcs_page_certificate_end_timestamp_seconds")  # of a page for other hosts
    assert len(asked) > 12 and asked <= known, asked - known
    shown = " ".join(queries)
    assert not [name for name in known if name not in shown], "figures without a panel"
    alerts = re.findall(r"- alert: (\w+)", rules)
    assert alerts == re.findall(r"^## (\w+)$", open(os.path.join(ROOT, "docs/ALERTS.md")).read(), re.M)
    described = open(os.path.join(ROOT, "docs/STATUS_PAGE.md")).read()
    assert all(name in described for name in known if name.startswith("dcs_")), [n for n in known if n not in described]


def check_life(pool):
    """`dcs up --page` starts it, `dcs status` names it, it outlives the scheduler, `dcs down` ends it."""
    assert pool.json("status")["page"] is None
    load = os.path.join(pool.dir, "page/load")  # as an earlier page left it
    with open(load, "w") as f:
        f.write(f"point 0 {int(time.time() - 60) * 1000} 777000 1 1\n")
    out = pool.dcs("up", "--page", "--mirror", "lagging", "--dir", pool.dir).stdout.decode()
    url = pool.json("status")["page"]
    assert url and url in out and f"page      {url}" in pool.dcs("status").stdout.decode()
    second = pool.dcs("page", check=False)
    assert second.returncode != 0 and url in second.stderr.decode()
    page = Page.__new__(Page)
    page.port = int(url.rstrip("/").rpartition(":")[2])
    wait_for("the page of dcs up", lambda: page.get("/")[0] == 200)
    assert "at most 777 a minute" in page.get("/")[2], "throughput of before is forgotten"
    wait_for("the figures to be kept", lambda: (lambda t: " 777000 1 1" in t and "base 0" in t)(open(load).read()))
    browser = Events(page)
    browser.next()
    check_rules(page)
    pool.kill("scheduler", "scheduler")
    wait_for("the page to say so", lambda: "does not answer" in browser.next()[1].get("head", ""))
    down = page.metrics()
    assert down["dcs_up"] == 0 and not [name for name in down if name.startswith("dcs_host_connected")], down
    assert down["dcs_backup_connected"] == 0, down
    pool.up()
    wait_for("the scheduler to be back", lambda: "does not answer" not in browser.next()[1].get("head", "does not answer"))
    assert page.metrics()["dcs_up"] == 1
    browser.close()
    pool.down()
    assert not page_answers(page), "dcs down ends the page"
    assert pool.json("status", check=False)["page"] is None


with Pool(servers=2, slots=2) as pool:
    page = Page(pool)
    check_headers(page)
    check_refusals(page)
    check_contents(pool, page)
    check_stream(page)
    check_crowd(pool, page)
    check_other_users(pool, page)
    if page.process.poll() is None:
        page.end()
    check_socket(pool)
    check_life(pool)
check_shared_pool()
print("the page shows what it should to whom it should")
