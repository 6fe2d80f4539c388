"""A page as its readers see it: a browser that follows it, and figures as text."""
import json
import re
import socket


class Events:
    """A browser that follows the page."""

    def __init__(self, page, last_id=None, query=""):
        self.socket = socket.create_connection(("127.0.0.1", page.port), timeout=300)
        field = f"Last-Event-ID: {last_id}\r\n" if last_id else ""
        self.socket.sendall(f"GET /events{query} HTTP/1.1\r\nHost: localhost:{page.port}\r\n{field}\r\n".encode())
        self.file = self.socket.makefile("rb")
        assert b" 200 " in self.file.readline()
        while self.file.readline().strip():
            pass

    def next(self):
        """Id and panels of the next event."""
        found = {}
        while True:
            line = self.file.readline().decode()
            assert line, "the stream of events has ended"
            name, _, value = line.rstrip("\n").partition(": ")
            if name:
                found[name] = value
            elif "data" in found:
                assert found["event"] == "panels"
                return found["id"], json.loads(found["data"])

    def close(self):
        self.file.close()
        self.socket.close()


def samples_of(text):
    """Samples by name and labels; every line must be one, or a comment of the format."""
    found, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# "):
            word, name = line[2:].split(" ")[:2] if line != "# EOF" else ("EOF", "")
            assert word in ("HELP", "TYPE", "EOF"), line
            if word == "TYPE":
                assert name not in types, f"{name} twice"
                types[name] = line.split(" ")[3]
            continue
        match = re.fullmatch(r'([a-z_]+)(\{(?:[a-z]+="(?:[^"\\]|\\.)*",?)+\})? (-?[0-9.e+-]+)', line)
        assert match, line
        family = re.sub(r"_(bucket|sum|count)$", "", match[1])
        assert match[1] in types or family in types or re.sub(r"_total$", "", match[1]) in types, line
        key = match[1] + (match[2] or "")
        assert key not in found, f"{key} twice"
        found[key] = float(match[3])
    return found
