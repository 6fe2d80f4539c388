"""A host of control programs, for tests: the frames of dcs_begin and of control programs, spoken by Python's
own TLS, so that it can also say what no program of ours would; and credentials in a descriptor as dcs_begin leaves them."""
import fcntl
import os
import shutil
import signal
import socket
import ssl
import struct
import subprocess

from pool import OPENING_FORM, program, start_time
from tls import TlsPool

PROTOCOL = OPENING_FORM
HELLO, WELCOME, GET_AUTH, AUTH_REPLY, OPEN, OPEN_REPLY, CLOSE, CLEAN, GKILL, DONE, GWAIT, RESULT, FETCH, QUERY, QUERY_REPLY, ERROR = (
    1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 14, 16, 17, 18)
BEGIN_CONTROL, BEGUN = 62, 63
SPKI = bytes.fromhex("3059301306072a8648ce3d020106082a8648ce3d030107034200")  # before the point of a key on P-256


def crc32c(data, table=[]):
    if not table:
        for i in range(256):
            for _ in range(8):
                i = i >> 1 ^ (0x82f63b78 if i & 1 else 0)
            table.append(i)
    crc = 0xffffffff
    for byte in data:
        crc = crc >> 8 ^ table[(crc ^ byte) & 255]
    return crc ^ 0xffffffff


def text(value):
    value = value.encode() if isinstance(value, str) else value
    return struct.pack("<I", len(value)) + value


def texts(payload):
    """The strings that a payload consists of."""
    found = []
    while payload:
        n, = struct.unpack("<I", payload[:4])
        found.append(payload[4:4 + n])
        payload = payload[4 + n:]
    return found


def frame(kind, payload, request=1):
    return struct.pack("<4sHHIQI", b"DCS1", kind, PROTOCOL, len(payload), request, crc32c(payload)) + payload


class Line:
    """A TLS connection with the certificate and key of a directory."""

    def __init__(self, address, identity=None, version=ssl.TLSVersion.TLSv1_3):
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        context.maximum_version = version
        if identity:
            context.load_cert_chain(os.path.join(identity, "certificate.pem"), os.path.join(identity, "key.pem"))
        host, port = address.rsplit(":", 1)
        plain = socket.create_connection((host, int(port)), timeout=300)
        try:
            self.socket = context.wrap_socket(plain)
        except (ssl.SSLError, OSError):
            plain.close()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *what):
        self.socket.close()

    def ask(self, kind, payload, request=1):
        """(kind, payload) of the reply; an ErrorReply as (ERROR, code, text); (None, why) if the connection ends."""
        try:
            self.socket.sendall(frame(kind, payload, request))
            return self.reply()
        except (ssl.SSLError, ConnectionError) as error:
            return None, str(error)

    def reply(self):
        magic, kind, _, length, _, crc = struct.unpack("<4sHHIQI", self.read(24))
        payload = self.read(length)
        assert magic == b"DCS1" and crc32c(payload) == crc, payload
        if kind != ERROR:
            return kind, payload
        code, n = struct.unpack("<iI", payload[:8])
        return ERROR, code, payload[8:8 + n].decode()

    def read(self, n):
        data = b""
        while len(data) < n:
            piece = self.socket.recv(n - len(data))
            if not piece:
                raise ConnectionError("the connection ended")
            data += piece
        return data

    def hello(self, token=b""):
        return self.ask(HELLO, struct.pack("<H", PROTOCOL) + text(token))

    def session(self, number, mode=1, request=2):
        return self.ask(OPEN, struct.pack("<iBB", number, mode, 0), request)


def query(kind=0, user="", session=0):
    return struct.pack("<B", kind) + text(user) + struct.pack("<iii", session, 0, -1) + text("") + text("")


def sealed(data):
    """A descriptor as dcs_begin leaves it."""
    fd = os.memfd_create("dcs-auth", os.MFD_ALLOW_SEALING)
    os.write(fd, data)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE)
    return fd


class Credentials:
    """What a control program has; `directory` holds its key and certificate."""

    def __init__(self, address, directory, token, authority):
        self.address, self.directory, self.token, self.authority = address, directory, token, authority

    def data(self):
        part = lambda name: open(os.path.join(self.directory, name)).read()
        return (f"DCS-CREDENTIALS 1\nscheduler {self.address}\ntoken {self.token.hex()}\n" + part("key.pem") +
                part("certificate.pem") + self.authority).encode()

    def line(self, hello=True):
        line = Line(self.address, self.directory)
        if hello:
            reply = line.hello(self.token)
            assert reply[0] == WELCOME, reply
        return line


class RemotePool(TlsPool):
    """The pool of tls.py, and hosts desk1 and desk2 for control programs."""
    options = ("--group", "none")
    sources = "desk1 role=client\ndesk2 role=client users=ann,root\n"
    made = 0

    def table(self, *hosts, sources=None):
        super().table(*hosts)
        with open(os.path.join(self.directory, "hosts"), "a") as file:
            file.write(self.sources if sources is None else sources)

    def __init__(self):
        self.programs = []
        super().__init__()

    def __exit__(self, *what):
        """A part that failed may have left programs and grains that would wait for ever."""
        for process in self.programs:
            if process.poll() is None:
                process.kill()
                process.wait()
        for _, _, pid, start in self.grain_processes():
            if start_time(pid) == start:
                os.killpg(pid, signal.SIGKILL)
        super().__exit__(*what)

    def join_client(self, name, *more):
        directory = os.path.join(self.base, name)
        return self.dcs(*self.client_code("--host", name), "--dir", directory, *more)

    def client_code(self, *arguments):
        words = self.dcs("token", "create", "--role", "client", *arguments).stdout.split()
        assert words[:3] == ["dcs", "host", "join"] and words[4:6] == ["--role", "client"] and len(words) == 10, words
        words[3] = self.proxy.address
        return words[1:]

    def new_key(self):
        """A directory with a fresh key, and that key's public part as DER."""
        RemotePool.made += 1
        directory = self.forge(f"key{RemotePool.made}", "program", "nobody/nowhere/nothing", authority=os.path.join(
            self.base, "other-authority"))
        der = ssl.PEM_cert_to_DER_cert(open(os.path.join(directory, "certificate.pem")).read())
        at = der.index(SPKI)
        return directory, der[at:at + len(SPKI) + 65]

    def ask_begin(self, host, user, ident, key):
        identity = host if os.path.isabs(host) else os.path.join(self.base, host, "pki")
        with Line(self.proxy.address, identity) as line:
            return line.ask(BEGIN_CONTROL, struct.pack("<H", PROTOCOL) + text(user) + text(ident) + text(key))

    def begin(self, host, user, ident="dcs"):
        directory, key = self.new_key()
        reply = self.ask_begin(host, user, ident, key)
        assert reply[0] == BEGUN, reply
        token, certificate, authority = texts(reply[1])
        with open(os.path.join(directory, "certificate.pem"), "w") as file:
            file.write(ssl.DER_cert_to_PEM_cert(certificate))
        return Credentials(self.proxy.address, directory, token, ssl.DER_cert_to_PEM_cert(authority))

    def reforged(self, credentials, name, age, life):
        """The same with a certificate of the pool's authority for the same key, but of another age or name."""
        RemotePool.made += 1
        directory = os.path.join(self.base, f"again{RemotePool.made}")
        os.mkdir(directory)
        shutil.copy(os.path.join(credentials.directory, "key.pem"), directory)
        self.forge(os.path.basename(directory), "program", name, age, life)
        return Credentials(credentials.address, directory, credentials.token, credentials.authority)

    def run(self, credentials, *arguments, data=None, check=True, env=None):
        """dcs as a control program of that host, whose user has no pool of his own."""
        process = self.start_program(credentials, *arguments, stdin=subprocess.PIPE, env=env)
        out, err = process.communicate(data, timeout=240)
        if check:
            assert process.returncode == 0, f"dcs {arguments}: {process.returncode}\n{out}{err}"
        return subprocess.CompletedProcess(arguments, process.returncode, out, err)

    def start_program(self, credentials, *arguments, stdin=None, env=None):
        fd = sealed(credentials.data())
        home = os.path.join(self.base, "home")
        os.makedirs(home, exist_ok=True)
        environment = dict(self.env, DCS_AUTH_FD=str(fd), HOME=home, **(env or {}))
        for name in ("DCS_DIR", "XDG_STATE_HOME"):
            environment.pop(name, None)
        process = subprocess.Popen([program("dcs"), *arguments], env=environment, pass_fds=[fd], stdin=stdin,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd="/")
        os.close(fd)
        self.programs.append(process)
        return process
