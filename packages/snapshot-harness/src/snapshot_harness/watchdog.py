"""A small process that cleans up when the runner itself was killed.

Plain `sh`, in a session of its own, reading a pipe: when the pipe closes, what
was announced and not taken back is killed and removed.
"""

import contextlib
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

SCRIPT = r"""
trap '' INT TERM HUP
words=''
drop() {
  kept=''
  for word in $words; do [ "$word" = "$1" ] || kept="$kept $word"; done
  words=$kept
}
while IFS= read -r line; do
  case $line in
    +*) words="$words ${line#+}" ;;
    -*) drop "${line#-}" ;;
  esac
done
end() {
  for word in $words; do
    case $word in g*) kill -s KILL -- "-${word#g}" 2>/dev/null ;; esac
  done
  for word in $words; do
    case $word in /*)
      for entry in $(grep -lsF "DSH_SNAPSHOT_RUN=$word" /proc/[0-9]*/environ 2>/dev/null); do
        pid=${entry#/proc/}
        kill -s KILL "${pid%/environ}" 2>/dev/null
      done
      below="s|^.* /proc/\([0-9]*\)/cwd -> $word[/ ].*|\1|p"
      for pid in $(ls -l /proc/[0-9]*/cwd 2>/dev/null | sed -n -e 's|$|/|' -e "$below"); do
        kill -s KILL "$pid" 2>/dev/null
      done
    esac
  done
  for word in $words; do
    case $word in /*) rm -rf -- "$word" 2>/dev/null ;; esac
  done
}
[ -n "$words" ] || exit 0
# Once more after a moment: a dying process may still have written a file.
end; sleep 0.3; end
"""


@dataclass(slots=True)
class Watchdog:
    """The watchdog of this process; it starts with the first announcement."""

    _process: subprocess.Popen[bytes] | None = None
    _owner: int = 0

    def add_group(self, group: int) -> None:
        """Announce a process group."""
        self._tell(f"+g{group}")

    def drop_group(self, group: int) -> None:
        """Take a process group back: it is gone."""
        self._tell(f"-g{group}")

    def add_directory(self, path: Path) -> None:
        """Announce a directory."""
        self._tell(f"+{path}")

    def drop_directory(self, path: Path) -> None:
        """Take a directory back: it is gone."""
        self._tell(f"-{path}")

    @property
    def pid(self) -> int | None:
        """The watchdog's process, if it was started."""
        return None if self._process is None else self._process.pid

    def close(self) -> None:
        """Let the watchdog end; it cleans up what is left."""
        process, self._process = self._process, None
        if process is not None and process.stdin is not None and self._owner == os.getpid():
            process.stdin.close()
            process.wait()

    def _tell(self, line: str) -> None:
        if self._process is None or self._owner != os.getpid():
            self._process = _start()
            self._owner = os.getpid()
        stdin = self._process.stdin
        if stdin is not None:
            # A watchdog that somebody killed is no reason to fail: it is the second net.
            with contextlib.suppress(BrokenPipeError):
                stdin.write(f"{line}\n".encode())
                stdin.flush()


WATCHDOG = Watchdog()
"""One per process: an xdist worker has its own."""


def _start() -> subprocess.Popen[bytes]:
    return subprocess.Popen(  # noqa: S603  a constant
        ["/bin/sh", "-c", SCRIPT],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        cwd="/",
        env={"PATH": os.environ.get("PATH", os.defpath)},
        start_new_session=True,
        bufsize=0,
    )
