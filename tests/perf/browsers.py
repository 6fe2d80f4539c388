"""Browsers as `dcs page` sees them, for measurements: connections that read what they are sent."""
import json
import socket
import subprocess
import threading
import time
import urllib.error
import urllib.request

from pool import program, wait_for


class Browser(threading.Thread):
    def __init__(self, url):
        super().__init__(daemon=True)
        self.bytes = self.updates = 0
        self.socket = socket.create_connection(("127.0.0.1", int(url.rstrip("/").rpartition(":")[2])))
        self.socket.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        self.start()

    def run(self):
        while data := self.socket.recv(1 << 20):
            self.bytes += len(data)
            self.updates += data.count(b"event: panels")

    def close(self):
        self.socket.shutdown(socket.SHUT_RDWR)


def answers(url):
    try:
        return urllib.request.urlopen(url).status == 200
    except urllib.error.HTTPError:  # the scheduler has not been asked yet
        return False


def start_page(env):
    """A page that has looked at the pool: its process and address."""
    page = subprocess.Popen([program("dcs"), "page", "--listen", "0", "-o", "json"], env=env, stdout=subprocess.PIPE)
    url = json.loads(page.stdout.readline())["url"]
    wait_for("the first look", lambda: answers(url))
    return page, url


def fetch(url):
    begun = time.monotonic()
    with urllib.request.urlopen(url) as answer:
        size = len(answer.read())
    return f"{size} bytes in {1000 * (time.monotonic() - begun):.1f} ms"


def figure(url, name):
    with urllib.request.urlopen(url + "metrics") as answer:
        return next(float(line.split()[1]) for line in answer.read().decode().splitlines() if line.startswith(name + " "))


def end(process):
    process.kill()
    process.wait()
