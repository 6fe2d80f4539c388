#!/usr/bin/python3
"""seq N | dcs map -- printf '%s\\n' {} on 2 servers x 2 slots, with dcs map, scheduler and servers killed
by -9 at random and the command run again: exactly seq N, in order."""
import os
import subprocess
import time

from pool import FULL, Pool, program, seeded


def main():
    count = 2000
    rng = seeded(3)
    numbers = "".join(f"{i}\n" for i in range(1, count + 1))
    with Pool(2, 2, 1.0, patient=False) as pool:
        path = os.path.join(pool.base, "numbers")
        with open(path, "w") as file:
            file.write(numbers)
        kills = 0
        rounds = 20 if FULL else 6
        while True:
            out = open(os.path.join(pool.base, "out"), "w+")
            errors = open(os.path.join(pool.base, "map.log"), "a")
            process = pool.start([program("dcs"), "map", "--", "printf", "%s\n", "{}"], stdin=open(path), stdout=out,
                                 stderr=errors)
            while process.poll() is None and kills < rounds:
                time.sleep(0.2 + rng.random() * 1.0)
                what = rng.choice(["map", "scheduler", "grainserver", "host"])
                if what == "map":
                    process.kill()
                elif what == "host":
                    pool.kill_host(rng.choice(pool.host_names()))
                else:
                    pool.kill(what, "scheduler" if what == "scheduler" else rng.choice(pool.host_names()))
                kills += 1
                time.sleep(rng.random() * 0.5)
                pool.up()
            try:
                code = process.wait(timeout=600)
            except subprocess.TimeoutExpired:
                process.kill()
                print(pool.dcs("session", "ls").stdout.decode(), open(errors.name).read()[-2000:])
                raise
            if code == -9:
                continue
            out.seek(0)
            text = out.read()
            assert code == 0, f"dcs map: exit {code}\n{open(errors.name).read()[-2000:]}"
            assert text == numbers, f"output differs at {os.path.commonprefix([text, numbers])[-40:]!r}"
            break
        print(f"{kills} kills survived")
        again = pool.dcs("map", "--replay", "--", "printf", "%s\n", "{}", data=numbers.encode())
        assert again.stdout.decode() == numbers, "the replay of a finished map prints something else"
    print("1 passed, 0 failed")


if __name__ == "__main__":
    main()
