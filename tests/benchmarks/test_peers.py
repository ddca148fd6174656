"""The comparison with other packages works, without any of them and without a network."""

from __future__ import annotations

import json
import sys
import urllib.request

import pytest

from tests.benchmarks import instructions, peers
from tests.benchmarks.__main__ import main
from tests.benchmarks.peer_cell import DRIVERS, run
from tests.benchmarks.peer_server import url
from tests.benchmarks.work import SHAPES, arguments

OURS = ["bare function", peers.NONE, peers.FRAME]
THEIRS = next(name for name, driver in DRIVERS.items() if driver.package)


def test_ours_alone(capsys):
    assert main(["--peers", "--only", "toolcassette", "--rounds", "1", "--calls", "3"]) == 0
    out = capsys.readouterr().out
    tables = [part.splitlines() for part in out.split("\n\n")]
    assert [table[0] for table in tables[:3]] == [
        "3 calls, rows, 1 rounds",
        "3 calls, text, 1 rounds",
        "30 calls, rows, 1 rounds",
    ]
    for table in tables[:3]:
        assert [line.split("  ")[0] for line in table[2:]] == OURS
        for line in table[2:]:
            micros, cpu, over_none, over_frame = map(float, line.split()[2:6])
            assert min(micros, cpu) > 0
            assert min(over_none, over_frame) >= 0
    assert [line.split("  ")[0] for line in tables[3][2:]] == OURS  # how the cost grows
    assert "failed" not in out


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", OURS)
def test_a_cell_that_is_right(tmp_path, name, shape):
    for mode in peers.MODES:
        found = run(name, mode, shape, 3, tmp_path, 0)
        assert found["right"]
        assert found["seconds"] > 0


def test_a_cell_that_is_wrong(tmp_path, monkeypatch):
    """A package that runs the body in a replay has no figure, however fast it is."""
    monkeypatch.setitem(DRIVERS, "forgetful", DRIVERS["bare function"])
    assert run("forgetful", "record", "rows", 3, tmp_path, 0)["right"]
    assert not run("forgetful", "replay", "rows", 3, tmp_path, 0)["right"]


def test_what_is_not_there_is_listed():
    """None of them is a dependency of ours; this interpreter is told to run it all the same."""
    found = peers.Interpreters({THEIRS: sys.executable}, {})
    compared = peers.compare(peers.Plan("rows", 2, 1, 60), found)
    assert compared.failed[THEIRS, "record"].startswith("failed: ModuleNotFoundError")
    assert compared.failed[THEIRS, "replay"] == "nothing to replay"
    assert "ModuleNotFoundError" in peers.report(compared, found)


def test_what_takes_too_long_is_not_tried_again():
    found = peers.Interpreters({"bare function": sys.executable}, {})
    compared = peers.compare(peers.Plan("rows", 2, 3, 0.001), found)
    assert compared.failed["bare function", "record"] == "DNF within 0.001 s"
    assert not compared.times


def test_what_does_not_install_is_listed(tmp_path, monkeypatch):
    """An environment without pip installs nothing."""
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python").symlink_to(sys.executable)
    monkeypatch.setattr(peers, "_pip_command", lambda python: [str(python), "-c", "raise SystemExit('no pip')"])
    found = peers.install(tmp_path, ["bare function", THEIRS])
    assert found.python == {"bare function": sys.executable}
    assert found.said == {THEIRS: "does not install: no pip"}


def test_slow_ones_have_fewer_rounds():
    compared = peers.Comparison(peers.Plan("rows", 2, 9, 60))
    for number in range(3):
        assert not compared.done("slow", "record", number)
        compared.times.setdefault(("slow", "record"), {})[number] = peers.Time(11.0, 1.0)
        compared.times.setdefault(("quick", "record"), {})[number] = peers.Time(1.0, 1.0)
    assert compared.done("slow", "record", 3)
    assert not compared.done("quick", "record", 3)


def test_a_ratio_is_of_one_round():
    compared = peers.Comparison(peers.Plan("rows", 2, 3, 60))
    compared.times["theirs", "record"] = {0: peers.Time(2.0, 1.0), 1: peers.Time(8.0, 1.0), 2: peers.Time(9.0, 2.0)}
    compared.times["ours", "record"] = {0: peers.Time(1.0, 1.0), 1: peers.Time(2.0, 1.0)}
    assert compared.ratio("theirs", "record", "ours") == 3.0
    assert compared.micros("theirs", "record") == 4e6
    assert compared.micros("theirs", "record", "cpu") == 0.5e6
    assert compared.ratio("theirs", "replay", "ours") is None


@pytest.mark.parametrize("shape", SHAPES)
def test_the_server_answers_as_the_tool_does(shape):
    with peers.server() as port, urllib.request.urlopen(url(port, shape, arguments(7))) as reply:
        assert json.load(reply) == SHAPES[shape](**arguments(7))


def test_counts_of_instructions_are_read():
    assert instructions.PERF.read("1234567,,instructions:u,99,100.00,,\n") == 1234567
    assert instructions.PERF.read("<not supported>,,instructions:u,0,100.00,,\n") is None
    assert instructions.VALGRIND.read("==7== \n==7== I   refs:      38,367,203\n") == 38367203
    assert instructions.Counter(("no-such-program",), instructions.VALGRIND.says).run(["true"]) is None


def test_instructions_of_a_call():
    """A counter that says 1,000 and 50 more for each call of the bare function, 500 for each of ours."""
    counting = (
        "import sys; words = sys.argv[4:]; calls = int(words[3]); bare = words[0].startswith('bare'); "
        "print('I refs: ', 1000 + calls * (50 if bare else 500), file=sys.stderr)"
    )
    using = instructions.Counter((sys.executable, "-c", counting), instructions.VALGRIND.says)
    counts = list(instructions.count(using, 40))
    assert [count.name for count in counts] == [
        f"{mode}-sync-{shape}" for shape in SHAPES for mode in ("record", "replay")
    ]
    assert {(count.each, count.ratio) for count in counts} == {(500.0, 10.0)}
