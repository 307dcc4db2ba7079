import pytest

from acp_example.provider.failures import stream_failure


@pytest.mark.parametrize(
    ("error", "code", "status", "message"),
    [
        ({"message": "slower", "code": 429}, "RATE_LIMIT", 429, "slower"),
        ({"message": "slower", "code": "rate_limit"}, "SERVER", None, "slower"),
        ({"message": "x", "type": "insufficient_quota"}, "QUOTA", None, "x"),
        ({"code": 200}, "SERVER", None, '{"code": 200}'),
        ("overloaded", "SERVER", None, "overloaded"),
        ({"message": {"deep": 1}}, "SERVER", None, '{"message": {"deep": 1}}'),
    ],
)
def test_an_error_in_a_stream_is_a_failure_with_a_code(
    error: object, code: str, status: int | None, message: str
) -> None:
    failure = stream_failure(error)

    assert (failure.code, failure.status) == (code, status)
    assert failure.message == f"the stream carries an error: {message}"
