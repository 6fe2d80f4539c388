"""A scheduler alone, on a state directory, and what is asked of it. Of the answers that is left which a state decides."""
import contextlib
import json
import os
import subprocess

# Not of the state: how long ago something was, counted from the scheduler's start, and what hosts tell when they call.
PASSING = {"last_contact_s", "checkpoint_age_s", "silent_s", "age_s", "since_s", "ago_s", "load", "free_memory_kb",
           "last_call_in_s"}
QUESTIONS = [("session", "show", "all"), ("grain", "show", "1:all"),
             ("grain", "show", "2:all"), ("host", "show", "all"), ("session", "log", "1"), ("session", "log", "2"),
             ("doctor",)]
STREAMS = ["1:7", "1:4", "1:59", "2:2", "2:3", "2:1"]


@contextlib.contextmanager
def serving(directory, programs):
    """Starts the scheduler of these programs on DIRECTORY/scheduler; gives a function that runs dcs there."""
    ready, told = os.pipe()
    daemon = subprocess.Popen([os.path.join(programs, "dcs_scheduler"), "--dir", os.path.join(directory, "scheduler"),
                               "--ready-fd", str(told)], pass_fds=[told],
                              stderr=open(os.path.join(directory, "scheduler.log"), "ab"))
    os.close(told)
    try:
        with os.fdopen(ready) as pipe:
            if pipe.read(5) != "ready":
                raise AssertionError(open(os.path.join(directory, "scheduler.log"), errors="replace").read())

        def dcs(*arguments):
            return subprocess.run([os.path.join(programs, "dcs"), *arguments], env=dict(os.environ, DCS_DIR=directory),
                                  stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300, check=False)
        yield dcs
    finally:
        daemon.terminate()
        daemon.wait()


def lasting(value):
    if isinstance(value, dict):
        return {k: lasting(v) for k, v in value.items() if k not in PASSING}
    return [lasting(v) for v in value] if isinstance(value, list) else value


def asked(dcs):
    answers = {}
    for question in QUESTIONS:
        result = dcs(*question, "-o", "json")
        text = result.stdout.decode()
        documents, decoder = [], json.JSONDecoder()
        while text.strip():
            document, end = decoder.raw_decode(text.lstrip())
            documents.append(lasting(document))
            text = text.lstrip()[end:]
        answers[" ".join(question)] = {"exit": result.returncode, "told": result.stderr.decode(), "documents": documents}
    for grain in STREAMS:
        result = dcs("grain", "cat", grain)
        answers["grain cat " + grain] = {"exit": result.returncode, "output": result.stdout.decode()}
    return answers
