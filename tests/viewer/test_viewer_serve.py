"""The viewer on a real socket: what it serves, to whom, and what it refuses."""

from __future__ import annotations

import http.client
import json
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from journeyman.errors import InputError
from journeyman.viewer.serve import PORTS, Viewer, open_viewer


@pytest.fixture
def run(tmp_path: Path) -> Path:
    for name in ("report.html", "report.json", "report.md", "secret.txt"):
        (tmp_path / name).write_text(f"this is {name} é")
    return tmp_path


@pytest.fixture
def viewer(run: Path) -> Iterator[Viewer]:
    opened = open_viewer(run, 0)
    thread = threading.Thread(target=opened.serve_forever, args=(0.01,))
    thread.start()
    yield opened
    opened.shutdown()
    thread.join()
    opened.server_close()


def ask(viewer: Viewer, path: str, method: str = "GET", **headers: str):
    port = viewer.server_port
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
    connection.putrequest(method, path, skip_host="Host" in headers)
    for name, value in headers.items():
        connection.putheader(name, value.replace("PORT", str(port)))
    connection.endheaders()
    answer = connection.getresponse()
    body = answer.read().decode()
    connection.close()
    return answer, body


@pytest.mark.parametrize(
    ("path", "name", "kind"),
    [
        ("/", "report.html", "text/html; charset=utf-8"),
        ("/report.html", "report.html", "text/html; charset=utf-8"),
        ("/report.json", "report.json", "application/json"),
        ("/report.md", "report.md", "text/markdown; charset=utf-8"),
    ],
)
def test_the_three_files_of_the_report_are_served(viewer, path, name, kind):
    answer, body = ask(viewer, path)
    assert (answer.status, body) == (200, f"this is {name} é")
    assert answer.getheader("Content-Type") == kind
    assert answer.getheader("X-Content-Type-Options") == "nosniff"
    assert answer.getheader("Content-Security-Policy", "").startswith("default-src 'none'")


@pytest.mark.parametrize(
    "path",
    ["/secret.txt", "/../report.json", "/%2e%2e/etc/passwd", "//etc/passwd", "/report.json/..", "/report.json?x=1"],
)
def test_nothing_else_is_served(viewer, path):
    answer, body = ask(viewer, path)
    assert answer.status == 404 and "this is" not in body


@pytest.mark.parametrize(
    "host",
    ["evil.example", "127.0.0.1", "127.0.0.1:1", "127.0.0.1:PORT.evil.example", "LOCALHOST:PORT", "[::1]:PORT", ""],
)
def test_a_request_for_another_host_is_refused(viewer, host):
    answer, body = ask(viewer, "/", Host=host)
    assert answer.status == 403 and "this is" not in body


@pytest.mark.parametrize(
    ("origin", "status"),
    [("http://evil.example", 403), ("https://127.0.0.1:PORT", 403), ("null", 403), ("http://127.0.0.1:PORT", 200)],
)
def test_a_foreign_origin_is_refused(viewer, origin, status):
    assert ask(viewer, "/", Origin=origin)[0].status == status


def test_localhost_is_the_same_machine_and_head_has_no_body(viewer):
    answer, body = ask(viewer, "/", "HEAD", Host="localhost:PORT")
    assert (answer.status, body) == (200, "") and int(answer.getheader("Content-Length", 0)) > 0


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "PATCH"])
def test_the_viewer_is_read_only(viewer, run, method):
    before = sorted(path.name for path in run.iterdir())
    assert ask(viewer, "/report.json", method)[0].status == 501
    assert sorted(path.name for path in run.iterdir()) == before


def test_it_listens_on_loopback_alone(viewer):
    assert viewer.server_address[0] == "127.0.0.1"
    assert viewer.url == f"http://127.0.0.1:{viewer.server_port}/"


def test_a_report_that_is_replaced_is_served_anew_and_one_that_vanished_is_not_found(viewer, run):
    (run / "report.md").write_text("newer")
    assert ask(viewer, "/report.md")[1] == "newer"
    (run / "report.md").unlink()
    assert ask(viewer, "/report.md")[0].status == 404


def test_a_directory_without_a_report_is_a_clear_error(tmp_path):
    with pytest.raises(InputError, match=r"holds no report\.html"):
        open_viewer(tmp_path)
    with pytest.raises(InputError, match="is no directory"):
        open_viewer(tmp_path / "missing")


def test_the_first_free_port_of_the_range_is_taken(run):
    first = open_viewer(run)
    second = open_viewer(run)
    ports = [found.server_port for found in (first, second)]
    first.server_close()
    second.server_close()
    assert all(port in PORTS for port in ports) and ports[0] < ports[1]


def test_a_taken_port_is_a_clear_error(run):
    with socket.create_server(("127.0.0.1", 0)) as other, pytest.raises(InputError, match="is not free on"):
        open_viewer(run, other.getsockname()[1])


def test_ctrl_c_ends_it_and_the_address_is_printed_first(run):
    code = (
        # a suite that a shell started in the background inherits a deaf SIGINT
        "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"import pathlib, journeyman.viewer as v; v.serve(pathlib.Path({str(run)!r}), port=0, as_json=True)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert json.loads(process.stdout.readline())["url"].startswith("http://127.0.0.1:")
        process.send_signal(signal.SIGINT)
        try:
            assert process.wait(timeout=10) == 0
        finally:
            process.kill()
