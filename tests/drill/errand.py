"""A control program of the drill that goes where others seldom go, in short: errand.py ROUND DIRECTORY. A file that the pool knows and one
that it does not, a file that comes back, much output now and later, a grain that is killed; then the session is closed and removed."""
import os
import sys

import dcs

GRAINS = 6
LOUD = 1500000  # more than is appended within a turn's root
OLD = b"the same in each round\n" * 3000


def new(number_of_round):
    return f"round {number_of_round}\n".encode() * 40000


def grain(number, number_of_round, directory):
    """What to submit, and what comes of it."""
    if number == 1:
        with open(os.path.join(directory, "old"), "wb") as file:
            file.write(OLD)
        return dict(argv=["/bin/sh", "-c", "wc -c <given"], files={"given": file.name}), f"{len(OLD)}\n".encode()
    if number == 2:
        with open(os.path.join(directory, f"new{number_of_round}"), "wb") as file:
            file.write(new(number_of_round))
        return dict(argv=["/bin/sh", "-c", "wc -c <given; cat given given >back"], files={"given": file.name}, outputs=["back"]), \
            f"{len(new(number_of_round))}\n".encode()
    if number < GRAINS:
        return dict(argv=["/bin/sh", "-c", f"sleep {3 * number - 8}; head -c {LOUD} /dev/zero | tr '\\0' x"]), b"x" * LOUD
    return dict(argv=["/bin/sleep", "100000"]), None


def main():
    number_of_round, directory = int(sys.argv[1]), sys.argv[2]
    os.makedirs(directory, exist_ok=True)
    seen = set()
    with dcs.Session(f"errand-{number_of_round}") as session:
        wanted = {}
        for number in range(1, GRAINS + 1):
            order, wanted[number] = grain(number, number_of_round, directory)
            session.submit(number, **order)
        while len(seen) < GRAINS - 1:
            result = session.wait().check()
            assert result.grain not in seen, f"grain {result.grain} came twice"
            seen.add(result.grain)
            assert result.output == wanted[result.grain], f"the output of grain {result.grain}: {result.output[:100]!r}"
            if result.grain == 2:
                with result.open_file("back") as file:
                    assert file.read() == 2 * new(number_of_round)
        session.kill(GRAINS)
    session.clean()
    print(*sorted(seen))


if __name__ == "__main__":
    main()
