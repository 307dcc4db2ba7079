import pytest

from acp_example.retry import is_transient, retry_delay_ms
from llm_replay.chunks import Failure
from llm_replay.seam import RetryPolicy

STEADY = RetryPolicy(jitter_ratio=0)


def failure(code: str, *, status: int | None = None, asked_ms: int | None = None) -> Failure:
    said: Failure = {"code": code, "message": "it failed"}
    if status is not None:
        said["status"] = status
    if asked_ms is not None:
        said["providerRetryAfterMs"] = asked_ms
    return said


def middle() -> float:
    return 0.5


@pytest.mark.parametrize(
    ("code", "status", "transient"),
    [
        ("RATE_LIMIT", 429, True),
        ("SERVER", 500, True),
        ("SERVER", 503, True),
        ("HTTP_408", 408, True),
        ("HTTP_409", 409, True),
        ("TIMEOUT", None, True),
        ("TRANSPORT", None, True),
        ("EMPTY_RESPONSE", None, True),
        ("QUOTA", 429, False),
        ("QUOTA", 409, False),
        ("AUTH", 401, False),
        ("INVALID_REQUEST", 400, False),
        ("CONTEXT_WINDOW_EXCEEDED", 400, False),
        ("HTTP_404", 404, False),
        ("STREAM_CLOSED", None, False),
        ("MALFORMED_RESPONSE", None, False),
        ("ABORTED", None, False),
        ("UNKNOWN", None, False),
    ],
)
def test_retry_classifier(code: str, status: int | None, *, transient: bool) -> None:
    assert is_transient(failure(code, status=status), RetryPolicy()) is transient
    delay = retry_delay_ms(failure(code, status=status), RetryPolicy(), retry=1, random=middle)
    assert (delay is not None) is transient


def test_retry_delays_double_up_to_the_cap() -> None:
    delays = [
        retry_delay_ms(failure("SERVER"), STEADY, retry=retry, random=middle)
        for retry in range(1, 7)
    ]

    assert delays == [500, 1000, 2000, 4000, 8000, None]


def test_retry_without_a_bound_stays_at_the_cap() -> None:
    policy = RetryPolicy(mode="always", jitter_ratio=0)

    assert retry_delay_ms(failure("SERVER"), policy, retry=6, random=middle) == 10_000
    assert retry_delay_ms(failure("SERVER"), policy, retry=5000, random=middle) == 10_000
    assert retry_delay_ms(failure("AUTH"), policy, retry=1, random=middle) is None


@pytest.mark.parametrize(("drawn", "delay"), [(0.0, 450), (0.5, 500), (0.9999999, 550)])
def test_retry_jitter_stays_within_its_ratio(drawn: float, delay: int) -> None:
    assert retry_delay_ms(failure("SERVER"), RetryPolicy(), retry=1, random=lambda: drawn) == delay


def test_retry_jitter_never_exceeds_the_cap() -> None:
    policy = RetryPolicy(mode="always")

    assert retry_delay_ms(failure("SERVER"), policy, retry=9, random=lambda: 0.99) == 10_000


@pytest.mark.parametrize(
    ("asked_ms", "delay"), [(0, 0), (7000, 7000), (10_000, 10_000), (10_001, None)]
)
@pytest.mark.parametrize("mode", ["normal", "always"])
def test_retry_after_is_honoured_up_to_the_cap(asked_ms: int, delay: int | None, mode: str) -> None:
    policy = RetryPolicy(mode="always" if mode == "always" else "normal")
    asked = failure("RATE_LIMIT", status=429, asked_ms=asked_ms)

    assert retry_delay_ms(asked, policy, retry=1, random=lambda: 0.99) == delay


def test_retry_after_does_not_outlive_the_budget() -> None:
    asked = failure("RATE_LIMIT", asked_ms=5)

    assert retry_delay_ms(asked, RetryPolicy(max_retries=2), retry=2, random=middle) == 5
    assert retry_delay_ms(asked, RetryPolicy(max_retries=2), retry=3, random=middle) is None


def test_retry_decisions_do_not_depend_on_whether_anybody_sleeps() -> None:
    instant = RetryPolicy(jitter_ratio=0, instant=True)

    assert retry_delay_ms(failure("SERVER"), instant, retry=2, random=middle) == 1000
