# The public names, for type checkers: the same as in `_HOMES`, and a test compares them.
from llm_replay.config import (
    ReplayConfig as ReplayConfig,
)
from llm_replay.config import (
    ReplayModelConfig as ReplayModelConfig,
)
from llm_replay.config import (
    ReplayProviderConfig as ReplayProviderConfig,
)
from llm_replay.replay import ReplayHandle as ReplayHandle
from llm_replay.replay import install_llm_replay as install_llm_replay
from llm_replay.requests import RecordedRequest as RecordedRequest
from llm_replay.rounds import (
    Block as Block,
)
from llm_replay.rounds import (
    call as call,
)
from llm_replay.rounds import (
    error as error,
)
from llm_replay.rounds import (
    fail as fail,
)
from llm_replay.rounds import (
    hang as hang,
)
from llm_replay.rounds import (
    raw as raw,
)
from llm_replay.rounds import (
    round_ as round_,
)
from llm_replay.rounds import (
    say as say,
)
from llm_replay.rounds import (
    think as think,
)
from llm_replay.scripted import ScriptedModel as ScriptedModel
from llm_replay.scripted import scripted as scripted
from llm_replay.seam import (
    ModelInfo as ModelInfo,
)
from llm_replay.seam import (
    ProviderAdapter as ProviderAdapter,
)
from llm_replay.seam import (
    RetryPolicy as RetryPolicy,
)
from llm_replay.seam import (
    Runtime as Runtime,
)
from llm_replay.seam import (
    StreamHandler as StreamHandler,
)
from llm_replay.verdict import (
    VERDICT_SCHEMA as VERDICT_SCHEMA,
)
from llm_replay.verdict import (
    VerdictFile as VerdictFile,
)
from llm_replay.verdict import (
    VerdictWriter as VerdictWriter,
)
from llm_replay.verdict import (
    read_verdict as read_verdict,
)
