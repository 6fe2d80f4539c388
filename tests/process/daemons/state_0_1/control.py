"""The control program whose closed session is in state.tar.xz. It repeats to its end wherever that state is served: the
grains' parameters are the same on every run, and nothing in them is looked at when they are recorded already."""
import os

import dcs

ENV = {"PATH": "/usr/bin:/bin", "LC_ALL": "C"}
DIRECTORY = "/tmp"
WORDS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "words")


def main():
    with dcs.Session("first-release", 1) as session:
        for number in range(4):
            session.submit(number, ["/bin/echo", f"grain {number}"], env=ENV, directory=DIRECTORY)
        session.submit(4, ["/bin/sh", "-c", "echo so not >&2; exit 3"], env=ENV, directory=DIRECTORY, attempts=1)
        session.submit(5, ["/bin/sh", "-c", "exit 7"], env=ENV, directory=DIRECTORY, attempts=4, label="fails everywhere")
        session.submit(6, ["/bin/sleep", "1000"], env=ENV, directory=DIRECTORY)
        session.submit(7, ["/bin/cat"], input="0123456789abcde\n" * 3000, env=ENV, directory=DIRECTORY, memory_mb=10)
        session.submit(8, ["/usr/bin/sort", "-u", "words", "-o", "sorted"], env=ENV, files={"words": WORDS},
                       outputs=["sorted"], cores=1, wall_s=600, thrash=2)
        session.submit(9, ["/bin/sh", "-c", "kill -11 $$"], env=ENV, directory=DIRECTORY, attempts=2, urgent=True, notice=1)
        session.submit_many([(number, dcs.Grain(["/bin/echo", f"of {number}"], env=ENV, directory=DIRECTORY, cores=1))
                             for number in range(20, 60)])
        session.kill(6)
        for result in session.results():
            print(result.grain, result.signal, result.code, len(result.output), len(result.error), flush=True)


main()
