"""The steps of an administrator with Blast's packages and guides, on a bare Debian 12.

A program for that system's own Python and for root, run by `scripts/bare-debian` in a clone of the project, as
`python3 -m tests.support.bare_installation`. It prints a line for each passed check, and ends at the first failure.
Services run under systemd, which is the first process of its own namespaces over the same files, on an isolated
network.
"""

from __future__ import annotations

import json
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.waiting import eventually

CONTROLLER, AGENT = Path("/etc/blast/blast.toml"), Path("/etc/blast/agent.toml")
STATE = {"blast": Path("/var/lib/blast"), "blast-agent": Path("/var/lib/blast-agent")}
LIBRARIES = Path("/usr/lib/blast")
PACKAGES = ("blast-common", "blast-agent", "blast-controller", "blast-engine")
COMPILER = ("cargo-web", "gcc", "libc6-dev")
SERVICES = ("blast-controller", "blast-agent")
SPACES = ("--mount", "--uts", "--ipc", "--net", "--pid", "--cgroup")
BOOT = """
mount -t tmpfs tmpfs /run
umount --lazy /sys/fs/cgroup
mount -t cgroup2 cgroup2 /sys/fs/cgroup
exec env -i container=blast PATH="$PATH" /lib/systemd/systemd --log-target=console --unit=multi-user.target
"""
TIMEOUT = 120.0
MINE = "\n# This line is the administrator's.\n"
NEXT = "\n# This line is the next release's.\n"


def run(*words: str, status: int = 0) -> str:
    """Run a command that must end with `status`, and return its standard output."""
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != status:
        raise SystemExit(f"{' '.join(words)}: status {done.returncode}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def held(check: str) -> None:
    """Report a passed check."""
    print(f"held: {check}", flush=True)


def packages(folder: Path) -> list[str]:
    """Return the packages in a folder, as arguments of apt."""
    found = sorted(f"{folder.resolve()}/{path.name}" for path in folder.glob("blast-*.deb"))
    assert len(found) == len(PACKAGES), found
    return found


class System:
    """The administrator's commands on the system with systemd."""

    def __init__(self, pid: str) -> None:
        self._into = ("nsenter", "--target", pid, *SPACES)

    def run(self, *words: str) -> str:
        """Run a command that must succeed, and return its standard output."""
        return run(*self._into, *words)

    def is_booted(self) -> bool:
        """Return True once all enabled services have started."""
        words = [*self._into, "systemctl", "is-system-running"]
        reported = subprocess.run(words, capture_output=True, text=True, check=False).stdout.strip()
        return reported in ("running", "degraded")

    def shown(self, service: str, name: str) -> str:
        """Return a property of a service, as systemd prints it."""
        return self.run("systemctl", "show", "--value", f"--property={name}", service).strip()

    def check_active(self) -> None:
        """Check that both services are active. On failure, print their own messages."""
        for service in SERVICES:
            if self.shown(service, "ActiveState") != "active":
                raise SystemExit(self.run("journalctl", "--no-pager", "--lines=40", f"--unit={service}"))


@contextmanager
def booted() -> Iterator[System]:
    """Run systemd over this system's files during the block."""
    with Path("/var/log/boot.log").open("w") as log:
        words = ["unshare", *SPACES, "--fork", "--kill-child", "--mount-proc", "bash", "-ec", BOOT]
        boot = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        children = Path(f"/proc/{boot.pid}/task/{boot.pid}/children")
        (first,) = eventually(lambda: children.read_text().split(), "the first process", TIMEOUT)
        system = System(first)
        eventually(system.is_booted, "systemd", TIMEOUT)
        yield system
    finally:
        boot.kill()
        boot.wait()


def services_work(system: System) -> None:
    """Check that both services are active, and that the agent receives a file with the compiled engine at both ends."""
    system.check_active()
    sent = Path("/srv/sent")
    sent.write_bytes(f"light {time.time()}".encode() * 100_000)
    reported = system.run("blast", "send", str(sent), "--to", "here=127.0.0.1:9095", "--via", "pipeline", "--json")
    (transfer,) = json.loads(reported.splitlines()[-1])["transfers"]
    assert [transfer["engine"], *(receiver["engine"] for receiver in transfer["receivers"])] == ["compiled"] * 2
    arrived = STATE["blast-agent"] / "incoming" / "sent"
    assert arrived.read_bytes() == sent.read_bytes()
    assert arrived.owner() == "blast-agent"


def live_and_die(system: System) -> None:
    """Check how systemd handles the units when they are enabled, reloaded, killed and stopped."""
    system.run("systemctl", "enable", "--now", *SERVICES)
    services_work(system)
    system.run("systemctl", "reload", *SERVICES)
    services_work(system)
    held("systemd starts and reloads both, as users without privilege, and a file came through the agent")
    before = [system.shown(service, "MainPID") for service in SERVICES]
    system.run("systemctl", "kill", "--signal=KILL", *SERVICES)

    def are_back() -> bool:
        states = [system.shown(service, "ActiveState") for service in SERVICES]
        return states == ["active"] * 2 and [system.shown(service, "NRestarts") for service in SERVICES] == ["1"] * 2

    eventually(are_back, "the services that were killed", TIMEOUT)
    assert not set(before) & {system.shown(service, "MainPID") for service in SERVICES}
    services_work(system)
    held("killed, both are started again")
    system.run("systemctl", "stop", *SERVICES)
    assert [system.shown(service, "Result") for service in SERVICES] == ["success"] * 2
    system.run("systemctl", "start", *SERVICES)
    held("stopped, both end well")


def install_packages(built: list[str]) -> None:
    """Check the first installation."""
    run("apt-get", "install", "-y", "--no-install-recommends", *built)
    for user, folder in STATE.items():
        assert pwd.getpwnam(user).pw_shell == "/usr/sbin/nologin"
        assert folder.owner() == user and not stat.S_IMODE(folder.stat().st_mode) & 0o007, folder
    for user, part, file in (("blast", "controller", CONTROLLER), ("blast-agent", "agent", AGENT)):
        run("runuser", "-u", user, "--", "blast", part, "check", "--config", str(file))
    held("installed, and both configurations pass their checks as the services' own users")
    assert any(LIBRARIES.rglob("*.pyc"))


def next_release(built: list[str], folder: Path) -> list[str]:
    """Return the same packages with a higher version, whose examples of a configuration have changed."""
    folder.mkdir()
    for package in built:
        tree = folder / "tree"
        run("dpkg-deb", "--raw-extract", package, str(tree))
        control = tree / "DEBIAN" / "control"
        control.write_text(re.sub(r"(\d)-1\b", r"\1-2", control.read_text()))
        for file in (tree / "etc" / "blast").glob("*.toml"):
            file.write_text(file.read_text() + NEXT)
        run("dpkg-deb", "-Znone", "--root-owner-group", "--build", str(tree), str(folder))
        shutil.rmtree(tree)
    return packages(folder)


def upgrade(system: System, later: list[str]) -> None:
    """Check an upgrade: modified files stay, others are replaced, services run the new release on the old state."""
    before = {system.shown(service, "MainPID") for service in SERVICES}
    CONTROLLER.write_text(CONTROLLER.read_text() + MINE)
    journal = STATE["blast"] / "journal.sqlite"
    inode = journal.stat().st_ino
    system.run("apt-get", "install", "-y", "-o", "Dpkg::Options::=--force-confold", *later)
    assert all(run("dpkg-query", "-W", "-f", "${Version}", name).endswith("-2") for name in PACKAGES)
    assert MINE in CONTROLLER.read_text() and NEXT not in CONTROLLER.read_text()
    assert NEXT in CONTROLLER.with_suffix(".toml.dpkg-dist").read_text()
    assert NEXT in AGENT.read_text()
    assert journal.stat().st_ino == inode
    assert not before & {system.shown(service, "MainPID") for service in SERVICES}
    services_work(system)
    held(
        "upgraded: a changed configuration and the journal are kept, an unchanged one is renewed, both run the new one"
    )


def remove_and_return(system: System, later: list[str]) -> None:
    """Check that removal keeps the administrator's files, and deletes those of the program."""
    system.run("apt-get", "remove", "-y", *PACKAGES)
    assert [system.shown(service, "ActiveState") for service in SERVICES] == ["inactive"] * 2
    assert not LIBRARIES.exists(), sorted(LIBRARIES.rglob("*"))[:20]
    assert not Path("/usr/bin/blast").exists()
    assert MINE in CONTROLLER.read_text() and (STATE["blast"] / "journal.sqlite").exists()
    held("removed: the services are stopped, nothing of the program is left, configuration and state are")
    system.run("apt-get", "install", "-y", "-o", "Dpkg::Options::=--force-confold", *later)
    assert MINE in CONTROLLER.read_text()
    system.run("systemctl", "start", *SERVICES)
    services_work(system)
    held("installed again, with the configuration of before")


def purge() -> None:
    """Check that only a purge deletes configuration and state."""
    CONTROLLER.with_suffix(".toml.dpkg-dist").unlink(missing_ok=True)
    run("apt-get", "purge", "-y", *PACKAGES)
    left = [path for path in (CONTROLLER.parent, LIBRARIES, *STATE.values()) if path.exists()]
    assert not left, left
    held("purged: configuration and state are gone")


def without_packages(guide: str) -> list[str]:
    """Return the commands of a guide's section "Install a wheel" that need no systemd."""
    text = Path("docs", guide).read_text()
    block = re.findall(r"^```\n(.*?)^```$", text[text.index("### Install a wheel") :], re.DOTALL | re.MULTILINE)[0]
    return [line for line in block.splitlines() if not line.startswith("systemctl ")]


def by_the_guides() -> None:
    """Follow the operator's guide and then the agent's on one machine."""
    for user in STATE:
        run("userdel", user)
    # The guides are for people with a home directory that they can write to.
    os.environ["HOME"] = "/srv"
    script = ["set -e", *without_packages("how-to/operate.md")]
    script += ["/opt/blast/bin/blast controller example-config > /etc/blast/blast.toml"]
    script += ["runuser -u blast -- /opt/blast/bin/blast controller check --config /etc/blast/blast.toml"]
    run("bash", "-c", "\n".join(script))
    run("bash", "-c", "\n".join(["set -e", *without_packages("how-to/agents.md")]))
    run("runuser", "-u", "blast", "--", "/opt/blast/bin/blast", "controller", "check", "--config", str(CONTROLLER))
    held("controller and agent installed on one machine by the two guides, and both checks pass as written")


def main() -> int:
    """Run all steps, in the order of an installation's life."""
    run("apt-get", "update")
    run("apt-get", "install", "-y", "--no-install-recommends", "python3-venv", "systemd", "dbus", *COMPILER)
    run("make", "deb")
    built = packages(Path("dist"))
    held("built")
    install_packages(built)
    later = next_release(built, Path("/srv/next"))
    with booted() as system:
        live_and_die(system)
        upgrade(system, later)
        remove_and_return(system, later)
        system.run("systemctl", "stop", *SERVICES)
    purge()
    by_the_guides()
    return 0


if __name__ == "__main__":
    sys.exit(main())
