"""``record`` and ``replay`` around real programs: what they make of every way in which a program can end."""

from __future__ import annotations

import json
import stat
import subprocess
import sys

import pytest

from tests.cli.helpers import NAME, bodies, cassette, environment, program, record, replay, run
from toolcassette import Options, RecordedCall, read_cassette, verify
from toolcassette.process import environment as session_variables

PARTIAL = NAME + ".partial"
OTHER = "@tc.cassette_tool\ndef other():\n    print('other ran', file=open('bodies', 'a'))\n"
TWO_THEN = "weather('Wuhan'); weather('Paris'); "


@pytest.fixture
def folder(tmp_path):
    program(tmp_path)
    return tmp_path


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The bytes of a cassette of two calls, Wuhan and Paris, made by the command line itself."""
    folder = tmp_path_factory.mktemp("made")
    program(folder)
    done = record(folder)
    assert (done.returncode, done.stdout) == (0, "CANARY-VALUE\n")
    assert done.stderr == f"toolcassette: recorded {NAME} (2 calls)\n"
    assert bodies(folder) == ["Wuhan", "Paris"]
    assert stat.S_IMODE((folder / NAME).stat().st_mode) == 0o600
    assert not (folder / PARTIAL).exists()
    return (folder / NAME).read_bytes()


@pytest.fixture
def recorded(folder, made):
    """A folder with that cassette."""
    (folder / NAME).write_bytes(made)
    return folder


def no_trace(done):
    """Nothing of ours in the talk that should not be there: no traceback, no value."""
    assert "Traceback" not in done.stderr
    assert "CANARY" not in done.stderr
    assert "Paris" not in done.stderr
    return done


# -- record ----------------------------------------------------------------------------------------------------------


def test_record_then_replay_runs_no_body(recorded):
    assert verify(recorded / NAME).ok
    before = (recorded / NAME).read_bytes(), (recorded / NAME).stat().st_mtime_ns
    done = no_trace(replay(recorded))
    assert (done.returncode, done.stdout) == (0, "CANARY-VALUE\n")
    assert done.stderr == f"toolcassette: replayed {NAME} (2 calls, all consumed)\n"
    assert bodies(recorded) == []
    assert before == ((recorded / NAME).read_bytes(), (recorded / NAME).stat().st_mtime_ns)


def test_any_command_and_any_directory(folder):
    """The path is that of where the command line was started, wherever the program goes; stdin is the program's."""
    (folder / "elsewhere").mkdir()
    program(folder, "os.chdir('elsewhere'); weather(sys.stdin.read())")
    done = run(folder, "record", NAME, "--include", "w*,x*", "--no-strict-include", "--", "sh", "-c",
               f"echo from the shell; exec '{sys.executable}' agent.py", stdin="Rome")  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "from the shell\n")
    assert "note: include selected nothing by x*" in done.stderr
    assert [call.args for call in read_cassette(folder / NAME)] == [b'{"city":"Rome"}']


def test_options_reach_the_program(folder):
    assert record(folder, "--sync", "close").returncode == 0
    assert read_cassette(folder / NAME).header.sync == "close"


def test_a_session_described_around_us_is_not_that_of_the_command(folder):
    around = {"TOOLCASSETTE_MODE": "replay", "TOOLCASSETTE_FILE": "x", "TOOLCASSETTE_INCLUDE": "other"}
    assert record(folder, **around).returncode == 0
    bodies(folder)
    done = replay(folder, **around)
    assert done.returncode == 0, done.stderr
    assert bodies(folder) == []


def test_replace_says_whether_anything_changed(recorded):
    before = (recorded / NAME).read_bytes()
    done = record(recorded, "--replace")
    assert (done.returncode, (recorded / NAME).read_bytes()) == (0, before)
    assert done.stderr.startswith(f"toolcassette: unchanged {NAME} (2 calls)")
    program(recorded, "weather('Rome')")
    done = record(recorded, "--replace")
    assert (done.returncode, done.stderr) == (0, f"toolcassette: recorded {NAME} (1 call)\n")
    assert len(read_cassette(recorded / NAME)) == 1


def test_a_failing_re_recording_leaves_the_old_cassette(recorded):
    before = (recorded / NAME).read_bytes()
    program(recorded, "weather('Rome'); sys.exit(3)")
    done = no_trace(record(recorded, "--replace"))
    assert (done.returncode, (recorded / NAME).read_bytes()) == (3, before)
    assert (recorded / PARTIAL).exists()


def test_nonzero_status_passes_through_and_publishes_nothing(folder):
    program(folder, "weather('Wuhan'); sys.exit(7)")
    done = no_trace(record(folder))
    assert done.returncode == 7
    assert "the command ended with status 7\n" in done.stderr
    assert "nothing was published, the partial is kept; " in done.stderr
    assert "--publish-on-error" in done.stderr
    assert not (folder / NAME).exists()
    assert verify(folder / PARTIAL).state == "open"
    done = no_trace(record(folder, "--set-aside", "--publish-on-error"))
    assert done.returncode == 7
    assert f"recorded {NAME} (1 call)" in done.stderr
    assert verify(folder / NAME).ok
    assert len(list(folder.glob(PARTIAL + ".*"))) == 1
    done = no_trace(replay(folder))
    assert done.returncode == 7
    assert f"replayed {NAME} (1 call, all consumed)" in done.stderr


def test_a_program_without_a_selected_call(folder):
    program(folder, "print('nothing to do')")
    done = no_trace(record(folder))
    assert (done.returncode, done.stdout) == (1, "nothing to do\n")
    assert "nothing was recorded: no selected tool was called" in done.stderr
    assert not list(folder.glob("*.jsonl*"))
    done = no_trace(record(folder, "--allow-empty"))
    assert done.returncode == 1
    assert "include selected nothing by weather" in done.stderr
    done = record(folder, "--set-aside", "--allow-empty", "--no-strict-include", "--sync", "none")
    assert (done.returncode, done.stderr) == (0, f"toolcassette: recorded {NAME} (0 calls)\n")
    assert read_cassette(folder / NAME).header.sync == "none"
    done = no_trace(replay(folder))  # an empty cassette is replayed by doing nothing
    assert (done.returncode, done.stderr) == (0, f"toolcassette: replayed {NAME} (0 calls)\n")
    program(folder, "ask('Wuhan')")
    done = no_trace(replay(folder))
    assert (done.returncode, done.stdout) == (1, "swallowed CassetteMismatch\n")
    assert bodies(folder) == []


def test_a_pattern_that_selects_nothing_fails_a_recording(folder):
    done = no_trace(record(folder, "--include", "wether"))
    assert done.returncode == 1
    assert "include selected nothing by wether; correct the pattern, or pass --no-strict-include" in done.stderr
    assert not (folder / NAME).exists()


def test_a_value_that_cannot_be_kept_fails_though_the_program_swallows_it(folder):
    odd = "@tc.cassette_tool\ndef odd(): return object()\n"
    program(folder, odd + "try: odd()\nexcept Exception as error: print(type(error).__name__)")
    done = no_trace(record(folder, "--include", "odd"))
    assert (done.returncode, done.stdout) == (1, "UnrecordableValue\n")
    assert "cannot record " in done.stderr
    assert not (folder / NAME).exists()


def test_a_store_that_refuses_is_told_and_no_body_runs(folder):
    (folder / "open").mkdir()
    (folder / "open").chmod(0o777)
    program(folder, "ask('Wuhan')")
    done = no_trace(run(folder, "record", f"open/{NAME}", "--include", "weather", "--", "agent.py"))
    assert done.returncode == 2
    assert "could not record in this directory" in done.stderr
    assert bodies(folder) == []


# -- replay ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("weather('Wuhan')", "1 recorded call was never made: tool weather, path /, ordinal 1"),
        ("ask('Wuhan'); ask('Rome')", "(arguments_differ): tool weather, path /, ordinal 1; differs at $.city"),
        ("ask('Paris'); ask('Wuhan')", "(order_differs): tool weather, path /, ordinal 0"),
        ("ask('Wuhan'); ask('Paris'); ask('Paris')", "(exhausted): tool weather, path /, ordinal 2"),
        ("pass", "nothing was replayed: no selected tool was called"),
        (
            OTHER + TWO_THEN + "\ntry: other()\nexcept Exception: pass",
            "tool other is not selected by the cassette being replayed",
        ),
    ],
)
def test_a_run_that_differs_fails_though_the_program_ends_well(recorded, body, said):
    program(recorded, body)
    done = no_trace(replay(recorded))
    assert done.returncode == 1
    assert said in done.stderr
    assert bodies(recorded) == []


def test_allow_unconsumed(recorded):
    program(recorded, "weather('Wuhan')")
    done = replay(recorded, "--allow-unconsumed")
    assert (done.returncode, done.stderr) == (0, f"toolcassette: replayed {NAME} (1 of 2 calls consumed)\n")
    assert "--allow-unconsumed" in replay(recorded).stderr


def test_include_lets_other_tools_run_for_real(recorded):
    program(recorded, "@tc.cassette_tool\ndef other(): print('other ran')\n" + TWO_THEN + "other()")
    done = replay(recorded, "--include", "weather")
    assert (done.returncode, done.stdout, bodies(recorded)) == (0, "other ran\n", [])
    done = replay(recorded, "--include", "weather", "--include", "wether")
    assert done.returncode == 1
    assert "include selected nothing by wether" in done.stderr
    assert replay(recorded, "--include", "weather,wether", "--no-strict-include").returncode == 0
    program(recorded, "other = tc.cassette_tool(name='other')(lambda: print('other ran'))\nother()")
    assert "other ran" not in replay(recorded).stdout  # without --include


def test_the_verdict_is_told_beside_a_status_that_passes_through(recorded):
    program(recorded, "ask('Rome'); sys.exit(5)")
    done = no_trace(replay(recorded))
    assert done.returncode == 5
    assert "the command ended with status 5\n" in done.stderr
    assert "(arguments_differ)" in done.stderr


def test_names_from_the_cassette_are_shown_escaped(folder):
    name = "we\x1b[2J\u202eather"
    calls = [RecordedCall(tool=t, args=b"{}", value=b"1") for t in ("clock", name)]
    (folder / NAME).write_bytes(cassette(calls, include=["*"]))
    program(folder, "@tc.cassette_tool\ndef clock() -> int: return 1\nclock()")
    done = replay(folder)
    assert done.returncode == 1
    assert r"tool we\x1b[2J\u202eather" in done.stderr
    assert not set(done.stderr) & set("\x1b\u202e")


# -- processes that do not end as they should ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("end", "status"),
    [("os.kill(os.getpid(), signal.SIGKILL)", 137), ("os.kill(os.getpid(), signal.SIGTERM)", 143)],
)
def test_a_killed_recording_publishes_nothing(folder, end, status):
    program(folder, f"weather('Wuhan'); {end}")
    done = no_trace(record(folder, "--publish-on-error"))
    assert done.returncode == status
    assert f"the command was ended by {'SIGKILL' if status == 137 else 'SIGTERM'}; " in done.stderr
    assert "nothing was published, the partial is kept" in done.stderr
    assert not (folder / NAME).exists()
    report = verify(folder / PARTIAL)
    assert (report.state, report.calls) == ("open", 1)
    assert record(folder).returncode == 2  # what was left behind stands in the way, and is not destroyed
    assert verify(folder / PARTIAL) == report


def test_a_killed_replay_is_no_success(recorded):
    program(recorded, TWO_THEN + "os.kill(os.getpid(), signal.SIGKILL)")
    done = no_trace(replay(recorded))
    assert done.returncode == 137
    assert "ended by SIGKILL" in done.stderr


@pytest.mark.parametrize(("code", "expected"), [(0, 1), (4, 4)])
def test_os_exit_gives_no_verdict(recorded, code, expected):
    program(recorded, f"{TWO_THEN}os._exit({code})")
    done = no_trace(replay(recorded))
    assert done.returncode == expected
    assert "ended without a verdict" in done.stderr
    done = no_trace(record(recorded, "--replace", "--publish-on-error"))
    assert done.returncode == expected
    assert "ended without a verdict" in done.stderr
    assert "the partial is kept" in done.stderr
    assert len(read_cassette(recorded / NAME)) == 2
    assert verify(recorded / PARTIAL).state == "open"


def test_another_process_gets_no_session_and_never_runs_a_body(recorded):
    program(recorded, "ask('Wuhan')", name="worker.py")
    other = "subprocess.run([sys.executable, 'worker.py'], check=True)"
    program(recorded, f"weather('Wuhan'); {other}; weather('Paris')")
    done = no_trace(replay(recorded))
    assert (done.returncode, done.stdout, bodies(recorded)) == (0, "swallowed NoSession\n", [])
    done = no_trace(record(recorded, "--replace"))
    assert (done.returncode, done.stdout, bodies(recorded)) == (0, "swallowed NoSession\n", ["Wuhan", "Paris"])


def test_a_status_that_cannot_be_written_is_told_and_never_runs_a_body(recorded):
    """A full disk, a missing folder: that is no other process."""
    variables = session_variables("replay", NAME, None, Options(), "gone/status")
    program(recorded, "try: weather('Wuhan')\nexcept tc.StoreError as error: print(error)")
    done = subprocess.run(
        [sys.executable, "agent.py"],
        cwd=recorded,
        env=environment(**variables),
        capture_output=True,
        text=True,
        timeout=60,
    )
    said = "could not claim the session of this run: ENOENT\n"
    assert (done.returncode, done.stdout, bodies(recorded)) == (0, said, [])


def test_a_forked_worker_never_runs_a_body_and_does_not_end_the_session(recorded):
    fork = "pid = os.fork()\nif pid == 0:\n    ask('Rome')\n    sys.exit()\nos.waitpid(pid, 0)\n"
    program(recorded, f"weather('Wuhan')\n{fork}weather('Paris')")
    done = no_trace(replay(recorded))
    assert (done.returncode, done.stdout, bodies(recorded)) == (0, "swallowed SessionClosed\n", [])
    done = no_trace(record(recorded, "--replace"))
    assert (done.returncode, bodies(recorded)) == (0, ["Wuhan", "Paris"])


def test_calls_of_a_thread_belong_to_the_session_of_the_process(recorded):
    program(
        recorded,
        "import threading\nfor c in ('Wuhan', 'Paris'):\n"
        "    t = threading.Thread(target=weather, args=(c,)); t.start(); t.join()",
    )
    done = replay(recorded)
    assert (done.returncode, done.stderr) == (0, f"toolcassette: replayed {NAME} (2 calls, all consumed)\n")


def test_a_status_of_another_version_is_no_verdict(recorded):
    """A command may run another Python, with another toolcassette in it."""
    program(recorded, "import atexit, json; path = os.environ['TOOLCASSETTE_STATUS']\n"
                      "open(path, 'w').write(json.dumps({'outcome': 'consumed', 'colour': 'green'}))")  # fmt: skip
    done = no_trace(replay(recorded))
    assert done.returncode == 1
    assert "ended without a verdict" in done.stderr
    assert json.loads(run(recorded, "verify", "--format", "json", NAME).stdout)[0]["ok"] is True


def test_tools_that_are_not_selected_run_and_are_not_recorded(folder):
    program(folder, "@tc.cassette_tool\ndef other(): print('other ran')\n" + "other(); weather('Wuhan'); other()")
    done = record(folder)
    assert (done.returncode, done.stdout) == (0, "other ran\nother ran\n")
    assert [call.tool for call in read_cassette(folder / NAME)] == ["weather"]
