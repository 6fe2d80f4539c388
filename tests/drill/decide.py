"""A control program of the drill that decides by results: decide.py ROUND ORDER. The result of each grain says what its
two successors compute, in a file that goes with each; every other one brings a file back. Everything that it takes it notes in
the file ORDER first, in the order in which it came; it prints the whole outcome when there is nothing left."""
import sys

import dcs

LAST = 63  # grains n have the successors 2n and 2n + 1
STEP = 'read value <value; sleep 0.$(($1 % 4 + 1)); echo "$1 of $value" >note; echo $((($value * 31 + $1) % 1009))'


def result_of(number, value):
    return (value * 31 + number) % 1009


def expected():
    """What it prints if no process disturbs it."""
    values, lines = {1: 7}, []
    for number in range(1, LAST + 1):
        result = result_of(number, values[number])
        lines.append(f"{number} {result}\n")
        values[2 * number], values[2 * number + 1] = result + 1, result + 2
    return "".join(lines)


def main():
    results, values = {}, {}
    with open(sys.argv[2], "a") as order, dcs.Session(f"decide-{sys.argv[1]}") as session:
        def submit(number, value):
            values[number] = value
            path = f"{sys.argv[2]}.{number}"
            with open(path, "w") as file:
                print(value, file=file)
            session.submit(number, ["/bin/sh", "-c", STEP, "step", str(number)], files={"value": path},
                           outputs=["note"] if number % 2 == 0 else [])

        print("run", file=order, flush=True)
        submit(1, 7)
        while len(results) < LAST:
            result = session.wait().check()
            number = result.grain
            print(number, file=order, flush=True)
            assert number not in results, f"grain {number} came twice"
            results[number] = int(result.output)
            if number % 2 == 0:
                with result.open_file("note") as file:
                    note = file.read()
                assert note == b"%d of %d\n" % (number, values[number]), note
            for successor in (2 * number, 2 * number + 1):
                if successor <= LAST:
                    submit(successor, results[number] + 1 + successor % 2)
    for number in sorted(results):
        print(number, results[number])


if __name__ == "__main__":
    main()
