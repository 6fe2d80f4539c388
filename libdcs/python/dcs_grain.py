"""Make a Python program a checkpointing grain. Standard library only, Python 3.9 or later.

    import dcs_grain

    dcs_grain.handler()
    first = dcs_grain.text.readline()          # state or the beginning of the input
    for line in dcs_grain.text:                # or dcs_grain.stdin, which gives bytes
        ...
        if dcs_grain.time_to_checkpoint():
            with dcs_grain.checkpoint("half way") as state:
                state.write(f"{count} {total!r}\\n")

The state text is put in front of the unread rest of the input when the grain goes on elsewhere. Without a
grain server the program is an ordinary filter. docs/GRAIN_PROTOCOL.md has what happens beneath.
"""
import atexit
import codecs
import errno
import fcntl
import os
import resource
import signal
import stat
import sys
import zlib

EXIT_WRITE_ERROR = 74  # output could not be written here: the grain goes on elsewhere and is not blamed
EXIT_AGAIN = 85        # "I took a checkpoint, run me again from it"; without a checkpoint a failure like others
_EXIT_MISUSE = 70
_MESSAGE_BYTES = 4096
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC

_run = None            # of a served grain, else False; None: the environment was not read
_asked = _thrashed = False
_installed = False
_opened = False        # a checkpoint is being written
_complete = []         # the first and the last complete increment of standard output: descriptor, file, length at its checkpoint


class _Run:
    def __init__(self, directory, sequence):
        self.directory, self.sequence, self.pid = directory, sequence, os.getpid()

    def path(self, stem, number):
        return os.path.join(self.directory, f"{stem}.{number}")


def _say(text):
    try:
        os.write(2, f"dcs_grain: {text}\n".encode(errors="replace"))
    except OSError:
        pass


def _fail_misuse(text):
    _say(text)
    os._exit(_EXIT_MISUSE)


def _fail_write(what, error):
    _say(f"cannot write {what}: {error.strerror or error}")
    if error.errno == errno.EFBIG:  # a limit that it would meet again elsewhere
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGXFSZ)
    os._exit(EXIT_WRITE_ERROR)


def _refuse_in_call():
    if "dcs_call" in sys.modules:  # dcs/call.py
        raise RuntimeError("a call of dcs.Executor takes no checkpoints, which are of programs that are grains: "
                           "let submit_command() of the executor run the program, or divide the work into shorter calls")


def _begin():
    global _run
    _refuse_in_call()
    if _run is not None:
        return _run
    _run = False
    directory, sequence = os.environ.get("DCS_GRAIN_DIR"), os.environ.get("DCS_GRAIN_SEQUENCE")
    # Only the process that the server started may move the grain's output: not a helper that it runs.
    if directory is None or sequence is None or os.getsid(0) != os.getpid():
        return _run
    if not (sequence.isascii() and sequence.isdigit() and int(sequence) < 2**32 - 1):
        _fail_misuse("DCS_GRAIN_SEQUENCE is not a sequence number")
    if not directory.startswith("/"):
        _fail_misuse("DCS_GRAIN_DIR is not an absolute path")
    _run = _Run(directory, int(sequence))
    return _run


def _on_checkpoint(_number, _frame):
    global _asked
    _asked = True


def _on_thrash(_number, _frame):
    global _thrashed
    _thrashed = True


def _flush():
    """Everything written so far is in its file, or the process ends."""
    for stream, descriptor, what in ((sys.stdout, 1, "standard output"), (sys.stderr, 2, "standard error")):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except OSError as error:
            _fail_write(what, error)
        try:
            copy = os.dup(descriptor)
        except OSError:
            continue  # not open: it had nothing to lose
        try:
            os.close(copy)  # network file systems tell of a full disk now
        except OSError as error:
            _fail_write(what, error)


def _is_file(descriptor, file=None):
    """The program may have closed the descriptor, and opened another file under its number."""
    try:
        status = os.fstat(descriptor)
    except OSError:
        return None
    return status if stat.S_ISREG(status.st_mode) and file in (None, (status.st_dev, status.st_ino)) else None


def _mark_complete(descriptor):
    for old, file, _length in _complete[1:]:
        if _is_file(old, file):
            os.close(old)
    status = os.fstat(descriptor)
    _complete[1:] = [(descriptor, (status.st_dev, status.st_ino), status.st_size)]


def _check_complete():
    """What another process has written there since is lost."""
    for descriptor, file, length in _complete if _run and os.getpid() == _run.pid else []:
        if (status := _is_file(descriptor, file)) and status.st_size > length:
            _fail_misuse("a child process, or a copy of the descriptor, that is older than a checkpoint has written to standard output "
                         "after it, which is lost: start children after it")


def _hook(previous):
    def uncaught(kind, value, trace):
        previous(kind, value, trace)
        if issubclass(kind, OSError) and value.errno in (errno.ENOSPC, errno.EDQUOT):
            os._exit(EXIT_WRITE_ERROR)
    return uncaught


def _ends():
    """Python gives signals back to the system before it has ended: one that comes then would kill it."""
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, signal.SIG_IGN)


def handler():
    """Call it first: from here on the grain server may ask for checkpoints. Harmless without a server."""
    global _installed
    if _installed:
        return
    run = _begin()
    _installed = True
    atexit.register(_check_complete)
    atexit.register(_flush)  # Python would end with 120, which looks like a failure of the program
    if not run:
        return
    atexit.register(_ends)
    sys.excepthook = _hook(sys.excepthook)
    signal.signal(signal.SIGUSR1, _on_checkpoint)
    signal.signal(signal.SIGUSR2, _on_thrash)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGUSR1, signal.SIGUSR2})
    try:
        os.close(os.open(os.path.join(run.directory, "announce"), _FLAGS, 0o644))
    except OSError as error:
        _fail_write("announce", error)


def time_to_checkpoint():
    """True once after each checkpoint signal."""
    global _asked
    _refuse_in_call()
    asked, _asked = _asked, False
    return asked


def thrashing():
    """True once after each thrash signal: the host pages. A grain that can shrink may do so."""
    global _thrashed
    thrashed, _thrashed = _thrashed, False
    return thrashed


class Input:
    """Standard input as bytes, with the exact offset of what the program took. Do not mix with sys.stdin."""

    def __init__(self, descriptor=0):
        self._descriptor, self._start, self._taken = descriptor, None, 0
        self._buffer, self._next, self._ended = b"", 0, False

    @property
    def used(self):
        return self._start is not None

    @property
    def offset(self):
        return (self._start or 0) + self._taken

    def _fill(self):
        """More behind what lies unread in the buffer; False at the end of the input."""
        if self._start is None:
            try:
                self._start = os.lseek(self._descriptor, 0, os.SEEK_CUR)
            except OSError:
                self._start = 0
        piece = b"" if self._ended else os.read(self._descriptor, 65536)
        self._ended = not piece
        self._buffer = self._buffer[self._next:] + piece
        self._next = 0
        return bool(piece)

    def _take(self, end):
        taken = self._buffer[self._next:end]
        self._next, self._taken = end, self._taken + len(taken)
        return taken

    def readline(self):
        """With its newline; the last line may have none; b"" at the end."""
        searched = 0
        while True:
            found = self._buffer.find(b"\n", self._next + searched)
            if found >= 0:
                return self._take(found + 1)
            searched = len(self._buffer) - self._next
            if not self._fill():
                return self._take(len(self._buffer))

    def read(self, size=-1):
        """`size` bytes, fewer only at the end; all that is left without `size`."""
        pieces, wanted = [], size
        while size < 0 or wanted > 0:
            if self._next == len(self._buffer) and not self._fill():
                break
            end = len(self._buffer) if size < 0 else min(len(self._buffer), self._next + wanted)
            pieces.append(self._take(end))
            wanted -= len(pieces[-1])
        return b"".join(pieces)

    def __iter__(self):
        return iter(self.readline, b"")


class TextInput:
    """The same input as text. Newlines stay as they are; errors=surrogateescape lets any bytes through."""

    def __init__(self, source, encoding="utf-8", errors="surrogateescape"):
        self._source, self._encoding, self._errors = source, encoding, errors

    def readline(self):
        return self._source.readline().decode(self._encoding, self._errors)

    def read(self, size=-1):
        """`size` characters, fewer only at the end."""
        if size < 0:
            return self._source.read().decode(self._encoding, self._errors)
        decoder = codecs.getincrementaldecoder(self._encoding)(self._errors)
        text, ended = "", False
        # Character by character, as no byte behind the last one may be taken.
        while len(text) < size and not ended:
            byte = self._source.read(1)
            ended = not byte
            text += decoder.decode(byte, ended)
        return text

    def __iter__(self):
        return iter(self.readline, "")


stdin = Input()
text = TextInput(stdin)


def input_offset():
    """Bytes of this run's standard input that the program consumed; None if unknown."""
    if stdin.used:
        return stdin.offset
    try:
        if sys.stdin is None:
            return os.lseek(0, 0, os.SEEK_CUR)
        # Of a text stream this is a position only where nothing of the decoder's must be added to it.
        position = sys.stdin.tell()
        return position if 0 <= position < 2**63 else None
    except (OSError, ValueError):
        return None


def _remove_old(run):
    for old in range(run.sequence - 2, -1, -1):
        try:
            os.unlink(run.path("checkpoint", old))
        except OSError:
            return  # none, so none before it either


def _out_of_the_way(descriptor):
    """Not in the place of a standard stream that the program closed."""
    if descriptor > 2:
        return descriptor
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)
    os.close(descriptor)
    return copy


def _move(run, stem, number, descriptor):
    # Of one run: if the file exists, another process wrote it, and using it would be wrong.
    opened = os.open(run.path(stem, number), _FLAGS | os.O_EXCL | os.O_APPEND, 0o644)
    if opened == descriptor:
        os.set_inheritable(opened, True)
    else:
        os.dup2(opened, descriptor, inheritable=True)
        os.close(opened)


class checkpoint:
    """`with checkpoint(message) as state:` state.write() takes str or bytes. When the block ends the checkpoint
    becomes visible and output goes to the next increments; an exception in the block leaves no checkpoint."""

    def __init__(self, message=""):
        self._message = message.encode(errors="replace") if isinstance(message, str) else bytes(message)
        self._pieces, self._offset, self._run = [], None, None

    def write(self, state):
        self._pieces.append(state.encode("utf-8", "surrogateescape") if isinstance(state, str) else bytes(state))
        return len(state)

    def input_offset(self, consumed):
        """For programs that read standard input in ways of their own: bytes consumed in this run."""
        if consumed < 0:
            _fail_misuse("input_offset: negative")
        self._offset = consumed

    def __enter__(self):
        global _opened
        self._run = _begin()
        if self._run and self._run.pid != os.getpid():
            _fail_misuse("a child process of the grain took a checkpoint")
        if _opened:
            _fail_misuse("a checkpoint was begun before the last one was complete")
        _opened = True
        return self

    def __exit__(self, kind, value, trace):
        global _opened
        _opened = False
        if kind is None and self._run:
            self._complete(self._run)
        return False

    def _header(self):
        offset = input_offset() if self._offset is None else self._offset
        if offset is None:
            _fail_misuse("cannot tell how much of standard input was consumed: read it by dcs_grain.stdin or "
                         "dcs_grain.text (`for line in sys.stdin` hides it), or say it with state.input_offset(n)")
        own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
        user, system = (int((a + b) * 1000000) for a, b in ((own.ru_utime, children.ru_utime),
                                                           (own.ru_stime, children.ru_stime)))
        message = self._message[:_MESSAGE_BYTES]
        head = f"dcs-checkpoint 1\ninput_offset {offset}\nusage_us {user} {system}\nmessage {len(message)}\n\n"
        return head.encode() + message + b"\n"

    def _complete(self, run):
        if run.sequence == 2**32 - 1:
            _fail_misuse("the sequence numbers are used up")
        what, state = run.path("checkpoint", run.sequence), b"".join(self._pieces)
        trailer = f"dcs-end {len(state)} {zlib.crc32(state):08X}\n".encode()
        header = self._header()
        _remove_old(run)
        try:
            created = os.open(what + ".tmp", _FLAGS | os.O_TRUNC, 0o644)
            with os.fdopen(_out_of_the_way(created), "wb") as file:
                file.write(header + state)
                file.flush()
                _check_complete()
                _flush()
                old = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 10) if _is_file(1) else None
                for stem, descriptor in (("out", 1), ("err", 2)):
                    _move(run, stem, run.sequence + 1, descriptor)
                file.write(trailer)
            os.rename(what + ".tmp", what)
        except OSError as error:
            _fail_write(error.filename or what, error)
        try:
            os.utime(os.path.join(run.directory, "input"))  # for sweepers of temporary directories
        except OSError:
            pass
        run.sequence += 1
        if old is not None:
            _mark_complete(old)
