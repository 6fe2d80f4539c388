"""libdrmaa.so.1.0 for tests, by ctypes: each call returns what it gives, or raises Refused with its number and sentence."""
import ctypes
import os
from ctypes import byref, c_char_p, c_int, c_long, c_size_t, c_uint, c_void_p, create_string_buffer

from pool import BIN, wait_for

LIBRARY = os.path.join(os.path.dirname(BIN), "lib/dcs/libdrmaa.so.1.0")
FOREVER = -1
ANY, ALL = "DRMAA_JOB_IDS_SESSION_ANY", "DRMAA_JOB_IDS_SESSION_ALL"
(SUCCESS, INTERNAL, COMMUNICATION, AUTH, INVALID_ARGUMENT, NO_SESSION, NO_MEMORY, INVALID_CONTACT, _, _, _, ALREADY, EXIT_ERROR, FORMAT,
 VALUE, CONFLICT, TRY_LATER, DENIED, INVALID_JOB, RESUME_STATE, SUSPEND_STATE, HOLD_STATE, RELEASE_STATE, TIMEOUT, _, NO_MORE) = range(26)
QUEUED, ON_HOLD, RUNNING, DONE, FAILED = 0x10, 0x12, 0x20, 0x30, 0x40
SUSPEND, RESUME, HOLD, RELEASE, TERMINATE = range(5)


class Refused(Exception):
    def __init__(self, code, text):
        super().__init__(f"{code}: {text}")
        self.code, self.text = code, text


class Library:
    def __init__(self, path=LIBRARY):
        self.so = ctypes.CDLL(path)
        self.so.drmaa_strerror.restype = c_char_p
        self.said = create_string_buffer(1024)

    def call(self, name, *arguments):
        function = getattr(self.so, "drmaa_" + name)
        code = function(*[a.encode() if isinstance(a, str) else a for a in arguments], self.said, c_size_t(len(self.said)))
        if code:
            raise Refused(code, self.said.value.decode())

    def text(self, name, *arguments):
        buffer = create_string_buffer(1024)
        self.call(name, *arguments, buffer, c_size_t(len(buffer)))
        return buffer.value.decode()

    def number(self, name, *arguments):
        found = c_int(-1)
        self.call(name, byref(found), *arguments)
        return found.value

    def init(self, contact=None):
        self.call("init", contact)
        return self.text("get_contact")

    def exit(self):
        self.call("exit")

    def elements(self, kind, pointer):
        size, buffer, found = c_int(), create_string_buffer(1024), []
        assert getattr(self.so, f"drmaa_get_num_{kind}s")(pointer, byref(size)) == SUCCESS
        while (code := getattr(self.so, f"drmaa_get_next_{kind}")(pointer, buffer, c_size_t(len(buffer)))) == SUCCESS:
            found.append(buffer.value.decode())
        assert code == NO_MORE and size.value == len(found)
        getattr(self.so, f"drmaa_release_{kind}s")(pointer)
        return found

    def listed(self, kind, name, *arguments):
        pointer = c_void_p()
        self.call(name, *arguments, byref(pointer))
        return self.elements(kind, pointer)

    @staticmethod
    def texts(values):
        return (c_char_p * (len(values) + 1))(*[value.encode() for value in values], None)

    def template(self, **attributes):
        """remote_command="sleep", v_argv=["5"], ..."""
        made = c_void_p()
        self.call("allocate_job_template", byref(made))
        for name, value in attributes.items():
            self.set(made, "drmaa_" + name, value)
        return made

    def set(self, template, name, value):
        if isinstance(value, str):
            self.call("set_attribute", template, name, value)
        else:
            self.call("set_vector_attribute", template, name, self.texts(value))

    def run(self, **attributes):
        template = self.template(**attributes)
        job = self.submit(template)
        self.call("delete_job_template", template)
        return job

    def submit(self, template):
        buffer = create_string_buffer(128)
        self.call("run_job", buffer, c_size_t(len(buffer)), template)
        return buffer.value.decode()

    def bulk(self, first, last, step, **attributes):
        template, pointer = self.template(**attributes), c_void_p()
        self.call("run_bulk_jobs", byref(pointer), template, first, last, step)
        self.call("delete_job_template", template)
        return self.elements("job_id", pointer)

    def state(self, job):
        state = c_int(-1)
        self.call("job_ps", job, byref(state))
        return state.value

    def control(self, job, action):
        self.call("control", job, action)

    def synchronize(self, jobs, timeout=FOREVER, dispose=False):
        self.call("synchronize", self.texts(jobs), c_long(timeout), int(dispose))

    def wait(self, job, timeout=FOREVER):
        """(job, how it ended, what it used); the end is ("exited", code), ("signaled", name) or ("aborted", None)."""
        buffer, stat, usage = create_string_buffer(128), c_int(-1), c_void_p()
        self.call("wait", job, buffer, c_size_t(len(buffer)), byref(stat), c_long(timeout), byref(usage))
        used = dict(text.split("=", 1) for text in self.elements("attr_value", usage))
        return buffer.value.decode(), self.end_of(stat), used

    def end_of(self, stat):
        exited, signaled, aborted, core = (self.number(name, stat) for name in ("wifexited", "wifsignaled", "wifaborted", "wcoredump"))
        assert exited + signaled + aborted == 1 and core == 0, (exited, signaled, aborted)
        if exited:
            return "exited", self.number("wexitstatus", stat)
        if aborted:
            return "aborted", None
        name = create_string_buffer(32)
        self.call("wtermsig", name, c_size_t(len(name)), stat)
        return "signaled", name.value.decode()

    def version(self):
        major, minor = c_uint(), c_uint()
        self.call("version", byref(major), byref(minor))
        return major.value, minor.value


def refused(code, call, *arguments, **named):
    """The sentence of an error that has to come."""
    try:
        call(*arguments, **named)
    except Refused as error:
        assert error.code == code, (error, code)
        return error.text
    raise AssertionError(f"{call.__name__}{arguments} was not refused")


def environment(**more):
    """Of a program that this one starts: credentials of dcs_begin are for this one alone, and Python still names them to others."""
    return {**{name: value for name, value in os.environ.items() if name != "DCS_AUTH_FD"}, **more}


class Tour:
    """A program in a directory of its own, on a pool."""

    def __init__(self, pool):
        self.pool, self.lib, self.work = pool, Library(), os.path.join(pool.base, "work")
        os.mkdir(self.work)
        os.environ["DCS_DIR"] = pool.dir
        os.environ["HOME"] = self.work
        os.chdir(self.work)
        os.environ["PWD"] = self.work

    def sh(self, text, **attributes):
        return self.lib.run(remote_command="sh", v_argv=["-c", text], **attributes)

    def read(self, name):
        with open(os.path.join(self.work, name)) as file:
            return file.read()

    def write(self, name):
        with open(os.path.join(self.work, name), "w"):
            pass

    def grain(self, job):
        return self.pool.json("grain", "show", job)["grain"]

    def until(self, job, state):
        wait_for(f"state {state:#x} of {job}", lambda: self.lib.state(job) == state, timeout=300)
