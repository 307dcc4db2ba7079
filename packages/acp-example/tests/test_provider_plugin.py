import json
import subprocess
import sys
from pathlib import Path

from acp_example import provider
from acp_example.llm import Llm
from acp_example.plugins import Context

WITHOUT = """
import json, sys
from pathlib import Path
from acp_example import boot
host = boot.host(Path(sys.argv[1]), {"DSH_SNAPSHOT": "replay", "HOME": "/nowhere"})
from acp_example import server
print(json.dumps([name for name in sys.modules if name.startswith("http")]))
"""


def test_the_plugin_registers_its_endpoint_and_takes_it_away(tmp_path: Path) -> None:
    llm = Llm()
    config = provider.Config.model_validate({"id": "local", "name": "Local"})

    undo = provider.apply(Context(llm=llm, directory=tmp_path), config)

    assert llm.providers["local"].name == "Local"
    assert [model.id for model in llm.providers["local"].models] == [
        "deepseek-chat",
        "deepseek-reasoner",
    ]
    undo()
    assert llm.providers == {}


def test_a_replayed_agent_never_loads_what_could_call_a_provider(tmp_path: Path) -> None:
    (tmp_path / "agent.toml").write_text('[[plugin]]\nid = "p"\nuse = "acp_example.provider"\n')
    (tmp_path / "agent.snapshot.toml").write_text(
        'extends = "agent.toml"\n[[patch]]\nid = "p"\ndisabled = true\n'
        '[[insert]]\nid = "llm-replay"\nuse = "llm_replay.plugin"\n'
    )
    fixture = tmp_path / "session.jsonl"
    fixture.write_text('{"type":"session","version":1,"id":"s","createdAt":0,"delegationDepth":0}')

    done = subprocess.run(  # noqa: S603  our own program
        [sys.executable, "-c", WITHOUT, str(tmp_path / "agent.toml")],
        env={"DSH_SNAPSHOT_FILE": str(fixture)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert done.stderr == ""
    assert not {"httpx", "httpx_sse", "httpcore"} & set(json.loads(done.stdout))
