"""The web of a world: seeded pages that link and contradict each other, searched and visited over real HTTP."""

from __future__ import annotations

import re
import threading
from collections import Counter
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from journeyman.tools.hosts import ToolDeadline
from journeyman.tools.page_reader import read_page
from journeyman.tools.web_server import SiteServer
from journeyman.tools.web_site import Site, make_site
from journeyman.tools.web_tools import Summariser, WebTools


@pytest.fixture(scope="module")
def site() -> Site:
    return make_site(11)


@pytest.fixture(scope="module")
def server(site: Site) -> Iterator[SiteServer]:
    running = SiteServer(site)
    yield running
    running.close()


@pytest.fixture
def web(server: SiteServer) -> Iterator[WebTools]:
    tools = WebTools(server)
    yield tools
    tools.close()


def test_a_site_has_200_linked_pages_with_dates_and_is_the_same_for_its_seed(site: Site) -> None:
    assert len(site.pages) >= 200
    assert make_site(11) == site != make_site(12)
    linked = {link for page in site.pages.values() for link in read_page(page.html, page.url).links}
    assert set(site.pages) <= linked
    assert linked <= set(site.pages)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\d", page.published_at) for page in site.pages.values())


def test_sources_contradict_each_other_and_one_value_holds(site: Site) -> None:
    said: dict[tuple[str, str, int], set[int]] = {}
    for claim in site.claims:
        said.setdefault((claim.subject, claim.metric, claim.year), set()).add(claim.value)
    assert sum(len(values) > 1 for values in said.values()) > 100
    holding = Counter((c.subject, c.metric, c.year) for c in site.claims if c.holds and "filings.example" in c.url)
    assert set(holding) == set(said)
    assert set(holding.values()) == {1}


def test_every_claim_stands_on_its_page(site: Site) -> None:
    for claim in site.claims:
        assert str(claim.value) in read_page(site.pages[claim.url].html, claim.url).text


def test_search_names_pages_that_a_visit_then_reads(web: WebTools, site: Site) -> None:
    claim = next(one for one in site.claims if one.holds and "restated" in one.url)
    found = web.call("web_search", {"query": f"{claim.subject} restated {claim.metric} {claim.year}"})
    assert claim.url in found.text
    page = web.call("web_visit", {"url": claim.url})
    assert not page.is_error
    assert str(claim.value) in page.text
    assert claim.published_at in page.text
    assert "tracked" not in page.text


def test_academic_search_gives_papers_of_the_years_asked_for(web: WebTools) -> None:
    found = web.call("academic_search", {"query": "routing calibration inventory", "year_from": 2020})
    years = [int(year) for year in re.findall(r'"year": (\d+)', found.text)]
    assert years
    assert min(years) >= 2020
    assert '"abstract"' in found.text
    assert web.call("academic_search", {"query": "x", "year_from": "2020"}).is_error


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("http://elsewhere.example/", "no host elsewhere.example can be reached"),
        ("file:///etc/passwd", "is no address of a page"),
        ("http://openatlas.example/wiki/nobody", "answered 404"),
        ("http://[::1", "is no address"),
    ],
)
def test_a_page_that_cannot_be_visited_is_a_refusal(web: WebTools, url: str, words: str) -> None:
    seen = web.call("web_visit", {"url": url})
    assert seen.is_error
    assert words in seen.text


def test_a_long_page_is_read_in_parts(web: WebTools) -> None:
    first = web.call("web_visit", {"url": "http://filings.example/"}).text
    more = re.search(r"of (\d+); read on with offset (\d+)", first)
    if more is None:
        assert len(first) < 20_000
        return
    second = web.call("web_visit", {"url": "http://filings.example/", "offset": int(more[2])})
    assert not second.is_error
    assert web.call("web_visit", {"url": "http://filings.example/", "offset": 10**7}).is_error


def test_a_summariser_is_used_for_a_goal_and_is_part_of_the_record(server: SiteServer) -> None:
    short = Summariser("first-line/1", lambda goal, text, left_s: f"{goal}: {text.splitlines()[1]}")
    tools = WebTools(server, summariser=short)
    url = next(iter(server.site.pages))
    assert "summary by first-line/1" in tools.call("web_visit", {"url": url, "goal": "title"}).text
    assert "summary by" not in tools.call("web_visit", {"url": url}).text
    assert tools.boundary["summariser"] == "first-line/1"
    assert "filings.example" in tools.boundary["hosts"]
    tools.close()


def test_a_server_that_never_answers_is_a_fault_by_its_deadline(server: SiteServer) -> None:
    release = threading.Event()

    class Silent(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            release.wait(10)

    silent = HTTPServer(("127.0.0.1", 0), Silent)
    thread = threading.Thread(target=silent.handle_request, daemon=True)
    thread.start()
    host = f"127.0.0.1:{silent.server_address[1]}"
    tools = WebTools(server, open_hosts=frozenset({host}))
    with pytest.raises(ToolDeadline):
        tools.call("web_visit", {"url": f"http://{host}/"}, deadline_s=0.3)
    release.set()
    thread.join(5)
    silent.server_close()
    tools.close()


def test_broken_html_is_read_as_far_as_it_goes() -> None:
    page = read_page("<p>one<a href='x'>two<p><td>three</td><script>no</p>", "http://h.example/a/")
    assert page.text.startswith("one")
    assert "no" not in page.text.split()
    assert read_page("<a href='../b'>up</a>", "http://h.example/a/c").links == ("http://h.example/b",)
    assert read_page("<a href='javascript:x()'>bad</a>", "http://h.example/").links == ()
