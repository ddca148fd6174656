"""What ``python -m tests.adapters.latest`` would try; the run itself installs packages and is no unit test."""

from __future__ import annotations

from tests.adapters import latest


def test_adapters_are_those_with_an_extra_and_tests():
    found = latest.adapters()
    assert found["langchain"] == ["langchain"]
    assert found["openai"] == ["openai"]
    assert found["anthropic"] == ["anthropic"]
    assert "pytest" not in found


def test_a_requirement_loses_its_bounds():
    names = [latest.name_of(each) for each in ("mcp>=1.27", "pydantic-ai-slim[x]>=2", "fastmcp")]
    assert names == ["mcp", "pydantic-ai-slim", "fastmcp"]


def test_a_stranger_is_named(capsys):
    assert latest.main(["langchain", "nobody"]) == 2
    assert "no such adapter: nobody" in capsys.readouterr().err
