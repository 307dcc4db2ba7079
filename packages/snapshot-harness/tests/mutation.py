"""Delete each statement of the judging modules in turn; a test must notice every time.

Run by `nox -s mutation`. A statement is deleted in the syntax tree, so the files stay as they
are. Each mutant runs in a fork of a process that has pytest loaded already. A survivor is an
error unless `mutation_survivors.txt` says why its absence cannot be seen.
"""

import argparse
import ast
import importlib.util
import os
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest

TESTS = Path(__file__).parent
LEAF_TESTS = TESTS.parents[1] / "llm-replay" / "tests"
SURVIVORS = TESTS / "mutation_survivors.txt"
SECONDS = 120
"""How long one mutant may run; one that hangs has been noticed."""

NORMALIZE, COMPARE = TESTS / "test_normalize.py", TESTS / "test_compare.py"

TARGETS: dict[str, list[Path]] = {
    # the normalizer
    "snapshot_harness.normalize": [NORMALIZE],
    "snapshot_harness.identities": [NORMALIZE, COMPARE],
    "snapshot_harness.references": [TESTS / "test_references.py", COMPARE],
    "snapshot_harness.model_rows": [NORMALIZE],
    "snapshot_harness.wire": [NORMALIZE],
    "snapshot_harness.rules": [TESTS / "test_rules.py", NORMALIZE],
    "snapshot_harness.paths": [TESTS / "test_paths.py", NORMALIZE],
    "llm_replay.tokens": [LEAF_TESTS / "reading" / "test_tokens.py"],
    # the canonical order
    "snapshot_harness.order": [TESTS / "test_order.py"],
    "snapshot_harness.places": [TESTS / "test_places.py", COMPARE],
    # the comparison
    "snapshot_harness.compare": [COMPARE],
    "snapshot_harness.records": [COMPARE],
    "snapshot_harness.causes": [COMPARE],
    "snapshot_harness.align": [TESTS / "test_align.py", COMPARE],
    "snapshot_harness.pairing": [TESTS / "test_pairing.py", COMPARE],
    "snapshot_harness.blocks": [TESTS / "test_blocks.py", TESTS / "test_guards.py"],
    "snapshot_harness.values": [TESTS / "test_values.py", COMPARE],
    # the verdict
    "snapshot_harness.verdict": [TESTS / "test_verdict.py"],
    "llm_replay.verdict": [LEAF_TESTS / "serving" / "test_verdict.py"],
    "llm_replay.claims": [LEAF_TESTS / "serving" / "test_claims.py"],
}
"""The modules that judge a run, each with the tests in one process that hold it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutant:
    """One statement of one module, to be deleted."""

    module: str
    index: int
    line: int
    text: str

    @property
    def name(self) -> str:
        """Return what `mutation_survivors.txt` calls it: the module and the statement's text."""
        return f"{self.module}: {self.text}"


def bodies(tree: ast.AST) -> Iterator[list[ast.stmt]]:
    """Yield every list of statements below `tree`, outermost first; none of a protocol."""
    abstract = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef) and "Protocol" in map(ast.unparse, node.bases)
        for inner in ast.walk(node)
    }
    for node in ast.walk(tree):
        if node in abstract:
            continue
        for field in ("body", "orelse", "finalbody"):
            body = getattr(node, field, None)
            if isinstance(body, list) and body and isinstance(body[0], ast.stmt):
                yield body


def deletable(tree: ast.AST) -> Iterator[tuple[list[ast.stmt], int]]:
    """Yield the place of every statement whose absence a test could see."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    ends = [function.body[-1] for function in functions]
    for body in bodies(tree):
        for place, statement in enumerate(body):
            match statement:
                case ast.Expr(value=ast.Constant()) | ast.Pass():
                    continue  # a docstring or an empty body does nothing
                case ast.Return(value=ast.Constant(value=None)) if statement in ends:
                    continue  # the end of a function returns None, said or not
                case _:
                    yield body, place


def mutants(module: str) -> list[Mutant]:
    """List every statement of `module` that can be deleted."""
    source = source_path(module).read_text()
    found = []
    for index, (body, place) in enumerate(deletable(ast.parse(source))):
        text = ast.unparse(body[place]).splitlines()[0]
        found.append(Mutant(module=module, index=index, line=body[place].lineno, text=text))
    return found


def source_path(module: str) -> Path:
    """Return the file of `module` without importing it."""
    package, _, name = module.rpartition(".")
    spec = importlib.util.find_spec(package)
    if spec is None or spec.submodule_search_locations is None:
        sys.exit(f"mutation: {package} is not installed")
    return Path(next(iter(spec.submodule_search_locations))) / f"{name}.py"


class MutatingFinder(MetaPathFinder, Loader):
    """Load one module with one statement missing."""

    def __init__(self, mutant: Mutant) -> None:
        self._mutant = mutant
        self._path = source_path(mutant.module)

    def find_spec(self, fullname: str, *_: object) -> ModuleSpec | None:
        """Claim the mutated module, and no other."""
        if fullname != self._mutant.module:
            return None
        return importlib.util.spec_from_file_location(fullname, self._path, loader=self)

    def exec_module(self, module: ModuleType) -> None:
        """Run the source without the mutant's statement."""
        tree = ast.parse(self._path.read_text())
        body, place = list(deletable(tree))[self._mutant.index]
        body[place : place + 1] = [] if len(body) > 1 else [ast.copy_location(ast.Pass(), body[0])]
        code = compile(tree, str(self._path), "exec", dont_inherit=True)
        exec(code, module.__dict__)  # noqa: S102  running a module is what a loader does


def run_mutant(mutant: Mutant) -> int:
    """Fork; run the module's tests without the statement; return the child's pid."""
    pid = os.fork()
    if pid:
        return pid
    signal.alarm(SECONDS)
    quiet = os.open(os.devnull, os.O_WRONLY)
    os.dup2(quiet, 1)
    os.dup2(quiet, 2)
    sys.meta_path.insert(0, MutatingFinder(mutant))
    tests = [str(path) for path in TARGETS[mutant.module]]
    plugins = [f"-pno:{name}" for name in ("cacheprovider", "randomly", "xdist")]
    plugins.append("--assert=plain")  # rewriting asserts would load the module before us
    try:
        status = int(pytest.main(["-x", "-q", *plugins, *tests]))
    except BaseException:  # noqa: BLE001  whatever a mutant breaks, it was noticed
        status = 1
    os._exit(status)


def survivors(todo: list[Mutant], lanes: int) -> list[Mutant]:
    """Run every mutant, `lanes` at a time; return those that no test noticed."""
    waiting, running, alive = list(reversed(todo)), dict[int, Mutant](), list[Mutant]()
    while waiting or running:
        while waiting and len(running) < lanes:
            mutant = waiting.pop()
            running[run_mutant(mutant)] = mutant
        pid, status = os.wait()
        mutant = running.pop(pid)
        if status == 0:
            alive.append(mutant)
            print(f"\nsurvived: {mutant.module}:{mutant.line}: {mutant.text}", flush=True)
        print(f"\r{len(todo) - len(waiting) - len(running)}/{len(todo)}", end="", flush=True)
    print()
    return alive


def justified() -> dict[str, str]:
    """Read the committed list: `MODULE: STATEMENT  # reason`, one a line."""
    found = {}
    for number, line in enumerate(SURVIVORS.read_text().splitlines(), 1):
        if not line.strip() or line.startswith("#"):
            continue
        name, separator, reason = line.rpartition("  # ")
        if not separator or not reason.strip():
            sys.exit(f"{SURVIVORS.name}:{number}: no reason given\n  hint: end it in '  # WHY'")
        found[name] = reason
    return found


def main() -> int:
    """Report the mutants that live without a reason, and the reasons no mutant needs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", default=list(TARGETS), help="default: all")
    parser.add_argument("--lanes", type=int, default=os.cpu_count() or 1, help="mutants at a time")
    options = parser.parse_args()
    known = justified()
    todo = [mutant for module in options.modules for mutant in mutants(module)]
    alive = {mutant.name for mutant in survivors(todo, options.lanes)}
    unexplained = sorted(alive - known.keys())
    stale = sorted(
        name for name in known.keys() - alive if name.partition(":")[0] in options.modules
    )
    for name in unexplained:
        print(f"survived without a reason: {name}\n  hint: add the test that misses it")
    for name in stale:
        print(f"no longer survives: {name}\n  hint: remove it from {SURVIVORS.name}")
    print(f"{len(todo)} statements deleted, {len(alive)} survived, {len(unexplained)} unexplained")
    return 1 if unexplained or stale else 0


if __name__ == "__main__":
    sys.exit(main())
