"""Hosts of a drill: a network namespace each, with an address of its own on a bridge in yet another namespace. All of
them end with the process that made them. What one host sends to another can be lost on the way: its entry for the
other's address names a card that no process has, so that no process notices anything but silence, as with a real cut."""
import ctypes
import os
import signal
import subprocess

PREFIX = "10.77.0."
NOBODY = "02:66:00:00:00:00"
PR_SET_PDEATHSIG = 1


def end_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


class Network:
    """names: of the hosts. Raises CannotBe where namespaces cannot be made."""

    class CannotBe(Exception):
        pass

    def __init__(self, names):
        self.names, self.holders = list(names), {}
        try:
            for name in ["switch", *self.names]:
                self.holders[name] = self.hold()
            self.run("switch", "link add br0 type bridge", "link set br0 up")
            for name in self.names:
                self.run("switch", f"link add to-{name} type veth peer name eth0 netns {self.holders[name].pid}",
                         f"link set to-{name} master br0", f"link set to-{name} up")
                self.run(name, f"link set eth0 address {self.card(name)}", f"addr add {self.address(name)}/24 dev eth0",
                         "link set eth0 up", "link set lo up")
            for name in self.names:
                self.run(name, *(self.neighbour(other, self.card(other)) for other in self.names if other != name))
        except (OSError, subprocess.SubprocessError) as error:
            self.close()
            raise Network.CannotBe(str(error)) from error

    def hold(self):
        """A namespace is there as long as a process in it is."""
        holder = subprocess.Popen(["unshare", "--net", "sh", "-c", "echo there; exec sleep 1000000"],
                                  stdout=subprocess.PIPE, preexec_fn=end_with_parent)
        if holder.stdout.readline() != b"there\n":
            holder.kill()
            raise OSError("no network namespace can be made: only root can, where the kernel has them")
        return holder

    def close(self):
        for holder in self.holders.values():
            holder.kill()
            holder.wait()
            holder.stdout.close()
        self.holders = {}

    def address(self, name):
        return PREFIX + str(self.names.index(name) + 1)

    def card(self, name):
        return f"02:77:00:00:00:{self.names.index(name) + 1:02x}"

    def neighbour(self, other, card):
        return f"neigh replace {self.address(other)} lladdr {card} dev eth0 nud permanent"

    def inside(self, name):
        """What to put before a command so that it runs on that host."""
        return ["nsenter", "-t", str(self.holders[name].pid), "-n", "--"]

    def run(self, name, *commands):
        subprocess.run([*self.inside(name), "ip", "-batch", "-"], input="\n".join(commands) + "\n", text=True,
                       check=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    # ---- faults -----------------------------------------------------------------------------
    def lose(self, sender, receiver):
        """What `sender` sends to `receiver` is lost: a connection of theirs is half open then."""
        self.run(sender, self.neighbour(receiver, NOBODY))

    def cut(self, one, other):
        self.lose(one, other)
        self.lose(other, one)

    def mend(self, one, other):
        self.run(one, self.neighbour(other, self.card(other)))
        self.run(other, self.neighbour(one, self.card(one)))

    def isolate(self, name):
        self.run("switch", f"link set to-{name} down")

    def rejoin(self, name):
        self.run("switch", f"link set to-{name} up")

    def refuse(self, sender, receiver):
        """What `sender` says to `receiver` is answered with a reset, by a host that knows nothing of it: itself."""
        self.run(sender, f"route add local {self.address(receiver)} dev lo")

    def refuse_no_more(self, sender, receiver):
        self.run(sender, f"route del local {self.address(receiver)} dev lo")
