"""A web for one world: over 200 linked, dated pages on several hosts, some of which contradict each other.

Seeded: the same seed gives the same pages. Every figure is a ``Claim`` with the date it was published and whether it
still holds, so that a task can ask for the value that counts and know which pages mislead: preliminary figures,
restated ones, stale encyclopaedia entries, a blog that mixes up units. No page names a person.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, timedelta
from html import escape

from journeyman.seeds import stream

HOSTS = {
    "registry": "filings.example",
    "press": "press.example",
    "news": "dailyledger.example",
    "wiki": "openatlas.example",
    "blog": "marketnotes.example",
    "papers": "papers.example",
}
"""Kind of source -> host. ``.example`` never resolves outside (RFC 2606)."""

NAMES = (
    *("Aldane", "Brisk", "Corvale", "Dunmore", "Eastmark", "Fennel", "Glenrock", "Harrow", "Ivarsen", "Jutland"),
    *("Kestrel", "Lorimer", "Marlow", "Norwick"),
)
SECTORS = ("Shipping", "Glass", "Foods", "Instruments")
METRICS = {"revenue": "USD million", "employees": "people", "orders": "units"}
YEARS = (2021, 2022, 2023, 2024)
TOPICS = ("routing", "inventory", "kiln control", "cold chains", "calibration", "demand forecasts")


@dataclass(frozen=True)
class Claim:
    """One figure that a page states.

    Attributes:
        subject: company.
        metric: key of ``METRICS``.
        year: business year.
        value: as stated.
        url: page that states it.
        published_at: ISO date.
        holds: whether it is the figure that counts (the latest filing).
    """

    subject: str
    metric: str
    year: int
    value: int
    url: str
    published_at: str
    holds: bool


@dataclass(frozen=True)
class Page:
    """One page.

    Attributes:
        url: absolute.
        title: of the page.
        published_at: ISO date.
        html: the whole document.
        paper: for papers: authors, year, venue, abstract; else None.
    """

    url: str
    title: str
    published_at: str
    html: str
    paper: dict[str, object] | None = None


@dataclass(frozen=True)
class Site:
    """All pages by address, and what they claim."""

    pages: dict[str, Page]
    claims: tuple[Claim, ...]


class _Builder:
    def __init__(self, seed: int) -> None:
        self.random = stream(seed, "web-site")
        self.pages: dict[str, Page] = {}
        self.claims: list[Claim] = []
        self.truth: dict[tuple[str, str, int], int] = {}

    def add(
        self, url: str, title: str, day: date, body: Sequence[str], links: Sequence[tuple[str, str]], **more: object
    ) -> str:
        items = "".join(f'<li><a href="{escape(href)}">{escape(text)}</a></li>' for href, text in links)
        parts = "".join(body)
        html = (
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
            f'<meta name="date" content="{day}"><style>body{{margin:2em}}</style></head><body><nav>'
            f'<a href="/">Home</a></nav><main><h1>{escape(title)}</h1><p>Published <time>{day}</time></p>{parts}'
            f"<ul>{items}</ul></main><script>var tracked = 1;</script></body></html>"
        )
        paper = more.get("paper")
        self.pages[url] = Page(url, title, str(day), html, paper if isinstance(paper, dict) else None)
        return url

    def claim(self, key: tuple[str, str, int], value: int, url: str, day: date, *, holds: bool) -> None:
        self.claims.append(Claim(*key, value, url, str(day), holds))

    def day(self, year: int) -> date:
        return date(year, 1, 1) + timedelta(days=self.random.randrange(365))


def make_site(seed: int) -> Site:
    """The site of a seed."""
    build = _Builder(seed)
    companies = {f"{name} {build.random.choice(SECTORS)}": name.lower() for name in NAMES}
    for company, slug in companies.items():
        for year in YEARS:
            _year(build, company, slug, year)
        _entry(build, company, slug)
        _news(build, company, slug, [one for one in companies if one != company], companies)
    _papers(build, companies)
    _homes(build)
    return Site(build.pages, tuple(build.claims))


def _table(rows: Sequence[tuple[str, object]]) -> str:
    cells = "".join(f"<tr><th>{escape(str(a))}</th><td>{escape(str(b))}</td></tr>" for a, b in rows)
    return f"<table>{cells}</table>"


def _year(build: _Builder, company: str, slug: str, year: int) -> None:
    """Preliminary release, filing, and for some a later restatement: three values of one figure."""
    filing = f"http://{HOSTS['registry']}/{slug}/{year}"
    release = f"http://{HOSTS['press']}/{slug}/{year}-results"
    filed, released = date(year + 1, 4, 10), date(year + 1, 2, 5)
    rows, early = [], []
    is_restated = build.random.random() < 0.35
    for metric, unit in METRICS.items():
        value = build.random.randrange(120, 9800)
        preliminary = value + build.random.choice((-1, 1)) * build.random.randrange(3, 60)
        key = (company, metric, year)
        later = value - build.random.randrange(5, 90) if is_restated and metric == "revenue" else value
        build.truth[key] = later
        rows.append((f"{metric} ({unit})", value))
        early.append(f"<p>{escape(company)} expects {metric} of about {preliminary} {unit} for {year}.</p>")
        build.claim(key, preliminary, release, released, holds=False)
        build.claim(key, value, filing, filed, holds=later == value)
        if later != value:
            url = f"http://{HOSTS['registry']}/{slug}/{year}-restated"
            text = f"<p>{metric} of {year} is restated from {value} to {later} {unit}. The earlier filing is void.</p>"
            day = filed + timedelta(days=200)
            build.add(url, f"{company}: restated {metric} {year}", day, [text], [(filing, "earlier filing")])
            build.claim(key, later, url, day, holds=True)
    others = [(f"http://{HOSTS['registry']}/{slug}/{one}", f"filing {one}") for one in YEARS if one != year]
    build.add(filing, f"{company}: annual filing {year}", filed, [_table(rows)], [*others, (release, "press release")])
    build.add(
        release, f"{company} announces preliminary results {year}", released, early, [(filing, "registry of filings")]
    )


def _entry(build: _Builder, company: str, slug: str) -> None:
    """An encyclopaedia entry that stopped being updated two years ago."""
    year = YEARS[-1] - 2
    day = date(year + 1, 6, 1)
    url = f"http://{HOSTS['wiki']}/wiki/{slug}"
    value = build.truth[company, "employees", year]
    text = f"<p>{escape(company)} is a company with {value} employees (as of {year}).</p>"
    links = [(f"http://{HOSTS['registry']}/{slug}/{one}", f"filing {one}") for one in YEARS]
    build.add(url, f"{company} - Open Atlas", day, [text], links)
    build.claim((company, "employees", YEARS[-1]), value, url, day, holds=False)


def _news(build: _Builder, company: str, slug: str, others: Sequence[str], companies: dict[str, str]) -> None:
    """Stories that quote the truth, and a blog that takes thousands for millions."""
    for number in range(4):
        year = build.random.choice(YEARS)
        metric = build.random.choice(tuple(METRICS))
        key, day = (company, metric, year), build.day(year + 1)
        value, peer = build.truth[key], build.random.choice(others)
        peer_link = f"http://{HOSTS['wiki']}/wiki/{companies[peer]}"
        links = [(f"http://{HOSTS['registry']}/{slug}/{year}", "filing"), (peer_link, peer)]
        if number < 3:
            url = f"http://{HOSTS['news']}/{day.year}/{slug}-{number}"
            text = f"<p>The filing of {escape(company)} puts {metric} of {year} at {value} {METRICS[metric]}.</p>"
            build.claim(key, value, url, day, holds=day >= date(year + 1, 11, 1))
        else:
            url = f"http://{HOSTS['blog']}/posts/{slug}"
            wrong = value * 1000
            text = f"<p>We hear that {escape(company)} had {metric} of {wrong} {METRICS[metric]} in {year}!</p>"
            build.claim(key, wrong, url, day, holds=False)
        build.add(url, f"{company}: {metric} of {year}", day, [text, f"<p>Peers: {escape(peer)}.</p>"], links)


def _papers(build: _Builder, companies: dict[str, str]) -> None:
    """Papers on what the companies do, each citing earlier ones."""
    made: list[tuple[str, str]] = []
    for number in range(36):
        topic, company = build.random.choice(TOPICS), build.random.choice(tuple(companies))
        year = 2012 + number // 3
        gain = build.random.randrange(2, 40)
        title = f"On {topic} in practice: case {number + 1}"
        abstract = f"We study {topic} at {company} and find that cost falls by {gain} percent ({year})."
        url = f"http://{HOSTS['papers']}/abs/{year}.{number:04d}"
        paper: dict[str, object] = {
            "authors": [f"{build.random.choice(SECTORS)} research group"],
            "year": year,
            "venue": build.random.choice(("Operations Letters", "Process Notes", "Supply Proceedings")),
            "abstract": abstract,
        }
        build.add(url, title, build.day(year), [f"<p>{escape(abstract)}</p>"], made[-3:], paper=paper)
        made.append((url, title))


def _homes(build: _Builder) -> None:
    """A front page for each host, with links to all of its pages."""
    for kind, host in HOSTS.items():
        pages = [(url, page.title) for url, page in sorted(build.pages.items()) if url.startswith(f"http://{host}/")]
        build.add(
            f"http://{host}/", f"{host} ({kind})", date(YEARS[-1] + 1, 12, 1), [f"<p>{len(pages)} pages</p>"], pages
        )
