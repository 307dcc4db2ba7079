"""The one door: everything this repository does, a session each. `nox -l` lists them."""

import shutil
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2026.10.20"
nox.options.default_venv_backend = "uv"
nox.options.reuse_venv = "yes"
nox.options.stop_on_first_error = True

PACKAGES = {"llm-replay": 100, "snapshot-harness": 98, "acp-example": 97}
"""Each package, and the branch coverage in percent that the tests must reach."""

ROOT = Path(__file__).parent


def sync(session: nox.Session, group: str) -> None:
    """Install exactly what `uv.lock` says, into the session's own environment."""
    session.run_install(
        "uv", "sync", "--locked", "--no-default-groups", f"--group={group}", "--quiet",
        f"--python={session.virtualenv.location}",
        env={"UV_PROJECT_ENVIRONMENT": session.virtualenv.location},
        external=True,
    )  # fmt: skip


def scenarios(session: nox.Session, *options: str) -> list[str]:
    """Return the command that runs the scenarios and leaves nothing in the temporary directory."""
    place = Path(session.virtualenv.location) / "pytest"
    return ["pytest", "scenarios", f"--basetemp={place}", *options]


def snapshot_arguments(session: nox.Session) -> list[str]:
    """Turn `FILTER` into pytest's `-k`; everything that begins with `-` goes on unchanged."""
    match session.posargs:
        case [first, *rest] if not first.startswith("-"):
            return ["-k", first, *rest]
        case rest:
            return list(rest)


def record_arguments(session: nox.Session) -> list[str]:
    """Turn every `NAME` into what is to be recorded; everything that begins with `-` goes on."""
    names = [f"--snapshot-record={name}" for name in session.posargs if not name.startswith("-")]
    options = [option for option in session.posargs if option.startswith("-")]
    return [*names, *("--snapshot-all" if option == "--all" else option for option in options)]


def packages_named(session: nox.Session) -> list[str]:
    """Return the packages named after `--`, or all of them."""
    for name in session.posargs:
        if name not in PACKAGES:
            session.error(f"there is no package {name!r}; there are {', '.join(PACKAGES)}")
    return session.posargs or list(PACKAGES)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, import contracts, schemas and workflows. `-- --fix` repairs what it can."""
    sync(session, "lint")
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")
    session.run("lint-imports")
    session.run("snapshot-harness", "schemas", *([] if fix else ["--check"]))
    session.run("actionlint")
    session.run("zizmor", "--offline", "--quiet", ".github/workflows")


@nox.session
def typecheck(session: nox.Session) -> None:
    """Check types strictly, package by package."""
    sync(session, "typecheck")
    for package in PACKAGES:
        session.run("mypy", f"packages/{package}/src", f"packages/{package}/tests")
    for rest in ("packages/acp-example/local_model", "docs/examples/small-agent", "benchmarks"):
        session.run("mypy", rest)
    session.run("mypy", "noxfile.py")


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests and measure coverage. What follows `--` goes to pytest."""
    sync(session, "tests")
    for old in ROOT.glob(".coverage*"):
        old.unlink()
    paths = any(Path(argument.partition("::")[0]).exists() for argument in session.posargs)
    targets = [] if paths else ["packages"]
    session.run("coverage", "run", "-m", "pytest", "-n", "auto", *targets, *session.posargs)


@nox.session
def snapshot(session: nox.Session) -> None:
    """Replay the scenarios. `-- FILTER` picks some by name; options go to pytest."""
    sync(session, "snapshot")
    session.run(*scenarios(session, "-n", "auto", *snapshot_arguments(session)))


@nox.session(default=False)
def snapshot_refresh(session: nox.Session) -> None:
    """Rewrite expectations from the committed scripts. Needs no key; review the diff."""
    sync(session, "snapshot")
    options = ["-n", "auto", "--snapshot-mode=refresh", *snapshot_arguments(session)]
    session.run(*scenarios(session, *options))


@nox.session(default=False)
def snapshot_record(session: nox.Session) -> None:
    """Record scenarios from a live model. `-- NAME…` are exact names or globs; needs a key."""
    sync(session, "snapshot")
    session.run(*scenarios(session, "--snapshot-mode=record", *record_arguments(session)))


@nox.session(default=False)
def coverage(session: nox.Session) -> None:
    """Judge what `tests` measured, a gate per package. `-- PACKAGE` judges one."""
    sync(session, "coverage")
    if list(ROOT.glob(".coverage.*")):
        session.run("coverage", "combine", "--quiet")
    elif not (ROOT / ".coverage").exists():
        session.error("nothing was measured yet: run `nox -s tests` first")
    for package in packages_named(session):
        session.run(
            "coverage", "report", f"--include=packages/{package}/src/*",
            f"--fail-under={PACKAGES[package]}",
        )  # fmt: skip


@nox.session(default=False, venv_backend="uv")
def build(session: nox.Session) -> None:
    """Build each package, install it alone, import every module of it. `-- PACKAGE` builds one."""
    named = packages_named(session)
    dist = Path(session.create_tmp()) / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    for package in PACKAGES:
        session.run(
            "uv", "build", "--quiet", f"--package={package}", f"--out-dir={dist}", external=True
        )
    for package in named:
        module = package.replace("-", "_")
        alone = Path(session.create_tmp()) / f"alone-{package}"
        interpreter = f"--python={sys.executable}"
        session.run("uv", "venv", "--quiet", "--clear", interpreter, str(alone), external=True)
        (wheel,) = dist.glob(f"{module}-*.whl")
        # uv's cache knows a wheel by its path and version, and both outlive what was built.
        install = ("uv", "pip", "install", "--quiet", f"--python={alone}", f"--find-links={dist}",
                   *(f"--refresh-package={ours}" for ours in PACKAGES))  # fmt: skip
        python = str(alone / "bin" / "python")
        session.run(*install, str(wheel), external=True)
        session.run(python, "-c", IMPORT_EVERYTHING, module, "alone", external=True)
        session.run(*install, "pytest", external=True)
        session.run(python, "-c", IMPORT_EVERYTHING, module, "in pytest", external=True)


# A plugin for pytest is imported by pytest alone, so it may take pytest for granted.
IMPORT_EVERYTHING = """
import importlib, pkgutil, sys
name, where = sys.argv[1:]
package = importlib.import_module(name)
found = [m.name for m in pkgutil.walk_packages(package.__path__, name + ".")]
taken = [one for one in found if where == "in pytest" or ".pytest_plugin" not in one]
for one in taken:
    importlib.import_module(one)
print(f"{name} {where}: {len(taken)} of {len(found)} modules imported")
"""


@nox.session(default=False)
def docs(session: nox.Session) -> None:
    """Build the documentation into `site/`; a warning is an error."""
    sync(session, "docs")
    session.run("sphinx-build", "-W", "--keep-going", "--quiet", "-b", "html", "docs", "site")


@nox.session(default=False)
def bench(session: nox.Session) -> None:
    """Measure the speed goals side by side; fail past 1.25 times a goal."""
    sync(session, "tests")
    for script in sorted(ROOT.glob("benchmarks/*.py")):
        session.run("python", str(script), *session.posargs)


@nox.session(default=False)
def mutation(session: nox.Session) -> None:
    """Delete each statement of the judging modules in turn; a test must notice every time."""
    sync(session, "tests")
    session.run("python", "packages/snapshot-harness/tests/mutation.py", *session.posargs)


@nox.session(default=False)
def determinism(session: nox.Session) -> None:
    """Replay the scenarios 20 times while everything around them varies. `-- --runs N`."""
    sync(session, "snapshot")
    session.run(
        "python", "packages/snapshot-harness/tests/determinism.py", "scenarios", *session.posargs
    )


@nox.session(default=False)
def record_local(session: nox.Session) -> None:
    """Record scenarios from a small real model on this machine. `-- NAME…`; needs no key."""
    sync(session, "snapshot")
    session.run(
        "python", "packages/acp-example/local_model/serve.py", "--cache", ".nox/local-model",
        "--allow", "bash.command=echo OK", "--",
        *scenarios(session, "--snapshot-mode=record", *record_arguments(session)),
    )  # fmt: skip


@nox.session(default=False)
def smoke(session: nox.Session) -> None:
    """Send one live prompt and write nothing. Needs a key, as recording does."""
    sync(session, "snapshot")
    session.run("snapshot-harness", "smoke", "scenarios", *session.posargs)


@nox.session(default=False)
def conformance(session: nox.Session) -> None:
    """Drive the installed agent with a headless client that is not ours."""
    sync(session, "tests")
    session.run(
        "python", "packages/acp-example/tests/conformance.py", "--folder", ".nox/acpx",
        *session.posargs,
    )  # fmt: skip
