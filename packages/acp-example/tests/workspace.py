"""A workspace in which a test runs tools as the loop would."""

import asyncio
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from acp_example.exceptions import ToolError
from acp_example.executor import Config, ShellExecutor
from acp_example.paths import roots_for
from acp_example.spill import SpillRoot
from acp_example.tools import CallInfo, Executor, Tool, ToolContext, ToolResult

CALL = CallInfo(lineage="1/2.1.1", turn=3, step=1, k=2, call_id="whatever")


@dataclass(kw_only=True)
class Workspace:
    """A directory to work in, and what the session knows."""

    cwd: Path
    spill: Path
    mode: str = "workspace-write"
    executor: Executor = field(default_factory=lambda: ShellExecutor(Config(grace_s=0.05)))
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    images: bool = False
    spills: bool = True
    read_files: set[Path] = field(default_factory=set)

    def file(self, name: str, content: str | bytes = "") -> Path:
        """Make a file below the working directory, and the directories it needs."""
        path = self.cwd / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def context(self) -> ToolContext:
        """Return what a call may use."""
        return ToolContext(
            cwd=self.cwd,
            call=CALL,
            policy=roots_for(self.mode, cwd=self.cwd, others=[self.spill]),
            environment=self.environment,
            read_files=self.read_files,
            executor=self.executor,
            spill=SpillRoot(self.spill) if self.spills else None,
            images=self.images,
        )

    def run(self, tool: Tool, **arguments: Any) -> ToolResult:  # noqa: ANN401  any JSON
        """Run a tool and return its result."""
        return asyncio.run(tool.run(arguments, self.context()))

    def error(self, tool: Tool, **arguments: Any) -> str:  # noqa: ANN401  any JSON
        """Run a tool that refuses, and return what the model reads of it."""
        with pytest.raises(ToolError) as caught:
            self.run(tool, **arguments)
        return str(caught.value)


@pytest.fixture
def ws(tmp_path: Path) -> Workspace:
    """An empty workspace."""
    cwd = tmp_path.resolve() / "ws"
    cwd.mkdir()
    return Workspace(cwd=cwd, spill=tmp_path.resolve() / "spill")
