"""Errors become exit codes and one message; a traceback appears only when it was asked for."""

from __future__ import annotations

import signal
import subprocess
import sys
import time

import click
import pytest

from journeyman import __version__
from journeyman.cli.breakdown import Breakdown, missing_extra, traceback_kept_in
from journeyman.cli.main import VERBS
from journeyman.cli.verb import print_json, progress, verb, warn
from journeyman.errors import EnvironmentMissing, GateFailed, InputError, SystemFault


@pytest.fixture
def failing(monkeypatch):
    """Adds a verb ``fail`` that raises what the test puts in."""

    def add(error: BaseException) -> None:
        def raise_it(as_json: bool) -> int:
            raise error

        monkeypatch.setitem(VERBS, "fail", verb("fail", "Fails.", "journeyman fail")(raise_it))

    return add


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (GateFailed("step 4 overfit: no gain"), 1),
        (InputError("recipe.toml", "is not there"), 2),
        (EnvironmentMissing("no sandbox here"), 3),
        (SystemFault("the verifier died"), 4),
        (click.UsageError("no such thing"), 2),
        (click.Abort(), 130),
        (KeyboardInterrupt(), 130),
    ],
)
def test_each_error_ends_with_its_exit_code_and_without_a_traceback(run, failing, error, code):
    failing(error)
    done = run("fail")
    assert done.code == code
    assert done.out == ""
    assert (str(error) or "interrupted") in done.err
    assert "Traceback" not in done.err


def test_an_error_of_our_own_is_called_a_bug_and_says_how_to_see_its_traceback(run, failing):
    failing(KeyError("turns"))
    done = run("fail")
    assert done.code == 4
    assert "a bug of its own: KeyError: 'turns'" in done.err
    assert "journeyman --debug" in done.err
    assert "Traceback" not in done.err
    assert "Traceback" in run("--debug", "fail").err


def test_a_missing_extra_is_one_sentence_with_the_command_that_installs_it(run, failing):
    failing(ModuleNotFoundError("No module named 'torch'", name="torch.nn"))
    done = run("fail")
    assert done.code == 3
    assert done.err.strip() == "this needs torch, which is not installed: pip install 'journeyman[train]'"
    assert missing_extra(ModuleNotFoundError(name="jurneyman")) is None


def test_an_unknown_verb_or_option_is_a_usage_error(run):
    assert run("quickstrat").code == 2
    done = run("doctor", "--jsn")
    assert done.code == 2
    assert "--json" in done.err


def test_version_and_help_print_to_stdout_and_end_with_0(run):
    assert run("--version").out.strip().endswith(__version__)
    shown = run("--help")
    assert shown.code == 0
    assert all(name in shown.out for name in VERBS)


def test_help_of_a_verb_shows_an_example_before_its_options_and_never_wraps_it(run):
    text = run("worlds", "build", "--help").out
    example = "  $ journeyman worlds build --seed 1 --split train --worlds 4 --tasks-per-world 3 --out runs/worlds\n"
    assert text.index(example) < text.index("Options:")


def test_quiet_hides_progress_but_not_warnings_and_json_stays_alone_on_stdout(run, monkeypatch):
    def speak(as_json: bool) -> int:
        progress("working")
        warn("careful")
        print_json({"done": as_json})
        return 0

    monkeypatch.setitem(VERBS, "speak", verb("speak", "Speaks.", "journeyman speak")(speak))
    loud, quiet = run("speak", "--json"), run("speak", "--json", "--quiet")
    assert loud.out == quiet.out == '{\n "done": true\n}\n'
    assert loud.err == "working\ncareful\n"
    assert quiet.err == "careful\n"


def test_what_breaks_in_a_run_leaves_its_traceback_in_the_run_directory(tmp_path):
    with pytest.raises(Breakdown, match="ZeroDivisionError") as caught, traceback_kept_in(tmp_path):
        1 / 0
    assert caught.value.kept_at == tmp_path / "traceback.txt"
    assert "1 / 0" in (tmp_path / "traceback.txt").read_text()


def test_a_system_fault_keeps_its_type_and_its_traceback_while_a_mistake_leaves_none(tmp_path):
    with pytest.raises(SystemFault), traceback_kept_in(tmp_path):
        raise SystemFault("the sandbox died")
    assert "the sandbox died" in (tmp_path / "traceback.txt").read_text()
    with pytest.raises(InputError), traceback_kept_in(tmp_path / "other"):
        raise InputError("x", "is wrong")
    with pytest.raises(Breakdown) as caught, traceback_kept_in(tmp_path / "never made"):
        raise KeyError
    assert caught.value.kept_at is None


def test_a_reader_that_leaves_early_is_no_error_message():
    command = [sys.executable, "-m", "journeyman.cli.main", "config", "schema"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


def test_ctrl_c_ends_with_130():
    script = (
        "import time\nfrom journeyman.cli.main import VERBS, main\nfrom journeyman.cli.verb import verb\n"
        "def nap(as_json):\n"
        "    print('ready', flush=True)\n"
        "    for _ in range(600): time.sleep(0.1)\n"  # a signal just before one long sleep would wait for its end
        "VERBS['nap'] = verb('nap', 'Sleeps.', 'journeyman nap')(nap)\n"
        "import sys; sys.exit(main(['nap']))"
    )
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGINT)
        begin = time.monotonic()
        _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert time.monotonic() - begin < 10
    assert b"interrupted" in err
    assert b"Traceback" not in err
