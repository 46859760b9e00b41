"""The companies of the group, everybody who works there, and the people outside whom they deal with."""

from __future__ import annotations

from datetime import date, timedelta
from random import Random
from typing import Any

from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.simulate.calendars import month_end, month_start

TOP = (
    ("ceo", "Chief Executive Officer", "Board"),
    ("cfo", "Chief Financial Officer", "Finance"),
    ("gc", "General Counsel", "Legal"),
    ("coo", "Chief Operating Officer", "Operations"),
    ("cco", "Chief Commercial Officer", "Sales"),
    ("chro", "Head of People", "People"),
    ("cto", "Head of Technology", "Technology"),
)
SECOND = (
    ("controller", "Group Controller", "cfo", "Finance"),
    ("treasurer", "Group Treasurer", "cfo", "Finance"),
    ("fpa", "Head of Planning", "cfo", "Finance"),
    ("counsel", "Senior Legal Counsel", "gc", "Legal"),
    ("secretary", "Company Secretary", "gc", "Legal"),
    ("procurement", "Head of Procurement", "coo", "Operations"),
    ("plant", "Head of Delivery", "coo", "Operations"),
    ("sales", "Head of Key Accounts", "cco", "Sales"),
    ("marketing", "Head of Marketing", "cco", "Sales"),
    ("data", "Lead Data Engineer", "cto", "Technology"),
    ("platform", "Platform Engineer", "cto", "Technology"),
    ("hrbp", "People Partner", "chro", "People"),
)
STAFF = {
    "Finance": "Accountant",
    "Legal": "Contracts Administrator",
    "Operations": "Operations Specialist",
    "Sales": "Account Manager",
    "Technology": "Analyst",
    "People": "People Coordinator",
}
OUTSIDE = (
    ("banker", "Director", "advisers", "Investment banking"),
    ("associate", "Associate", "advisers", "Investment banking"),
    ("lender", "Vice President, Agency", "lender", "Loan agency"),
    ("outside_counsel", "Partner", "law firm", "Corporate"),
    ("consultant", "Engagement Manager", "consultants", "Strategy"),
)
UNITS = tuple(STAFF)
NUM_LEAVERS = 2


def simulate_people(draft: Draft) -> None:
    """Entities, the organisation (four to five layers), monthly headcount, and people outside."""
    rng, setting = draft.rng("people"), draft.setting
    start = month_start(setting.first_month)
    founded = draft.event("company founded", start - timedelta(days=2000), f"{setting.company} is registered")
    _entities(draft, founded, start)
    names = _names(rng, setting.place)
    event = draft.event("payroll cut over", start, "Personnel master data moved to the group system")
    for role, title, unit in TOP:
        draft.roles[role] = _person(draft, names, rng, role, title, unit, "G1" if role == "ceo" else "G2", start)
    for role, title, _, unit in SECOND:
        draft.roles[role] = _person(draft, names, rng, role, title, unit, "G3", start)
    edges = [("ceo", role) for role, _, _ in TOP[1:]] + [(boss, role) for role, _, boss, _ in SECOND]
    pairs = [(draft.roles[boss]["id"], draft.roles[report]["id"]) for boss, report in edges]
    people = [*draft.roles.values()]
    for unit in UNITS:
        people += _team(draft, names, rng, unit, start, pairs)
    entity = draft.notes["entities"][0]["id"]
    draft.truth.add("person", people, event=event, at=start.isoformat())
    draft.truth.add(
        "org_edge",
        [
            {"id": f"O{n:03d}", "entity_id": entity, "manager_id": boss, "report_id": report}
            for n, (boss, report) in enumerate(pairs, start=1)
        ],
        event=event,
        at=start.isoformat(),
    )
    _leavers(draft, rng)
    _headcount(draft, rng, event)
    _outside(draft, names, rng, event)


def _entities(draft: Draft, event: str, start: date) -> None:
    setting = draft.setting
    forms = setting.locale["forms"]
    rows: list[dict[str, Any]] = [
        {"id": "G", "name": setting.company, "kind": "parent", "parent_id": None, "currency": setting.currency},
        {"id": "S1", "name": f"{setting.short} {_word(setting.foreign[0])}", "kind": "subsidiary",
         "parent_id": "G", "currency": setting.foreign[0]},
        {"id": "S2", "name": f"{setting.short} {_word(setting.foreign[1])}", "kind": "subsidiary",
         "parent_id": "G", "currency": setting.foreign[1]},
        {"id": "H", "name": f"{setting.short} Holdings {forms[0]}", "kind": "shareholder", "parent_id": None,
         "currency": setting.currency},
    ]  # fmt: skip
    for row in rows:
        row |= {"country": row["currency"][:2], "aliases": [row["name"].split(" ")[0]]}
    draft.notes["entities"] = rows
    draft.truth.add("entity", rows, event=event, at=start.isoformat())


def _word(currency: str) -> str:
    return {"USD": "North America Inc", "GBP": "United Kingdom Ltd", "EUR": "Continental GmbH"}[currency]


def _names(rng: Random, place: str) -> list[tuple[str, str]]:
    """Pairs of first and last names, none twice; about a tenth come from another place, as people do."""
    pools = pack("locales")
    own = [(first, last) for first in pools[place]["first"] for last in pools[place]["last"]]
    other = pools[rng.choice([name for name in sorted(pools) if name != place])]
    foreign = [(first, last) for first in other["first"] for last in other["last"]]
    drawn = rng.sample(own, 110) + rng.sample(foreign, 14)
    rng.shuffle(drawn)
    return drawn


def _person(
    draft: Draft, names: list[tuple[str, str]], rng: Random, role: str, title: str, unit: str, grade: str, start: date
) -> dict[str, Any]:
    first, last = names.pop()
    base = {"G1": 310, "G2": 205, "G3": 118, "G4": 84, "G5": 52}[grade]
    mail = _plain(f"{first}.{last}").lower()
    used = draft.notes.setdefault("mailboxes", set())
    mail = mail if mail not in used else _plain(f"{first}.{last}").lower() + str(len(used))
    used.add(mail)
    return {
        "id": draft.next_id("P"), "name": f"{first} {last}", "email": f"{mail}@{draft.setting.domain}",
        "title": title, "entity_id": "G", "unit": unit, "grade": grade, "role": role,
        "salary": 1000 * round(base * rng.uniform(0.85, 1.2)),
        "valid_from": (start - timedelta(days=rng.randrange(30, 3200))).isoformat(), "known_from": start.isoformat(),
    }  # fmt: skip


def _plain(text: str) -> str:
    return "".join(c for c in text if c.isascii() and (c.isalnum() or c in ".-"))


def _team(
    draft: Draft, names: list[tuple[str, str]], rng: Random, unit: str, start: date, pairs: list[tuple[str, str]]
) -> list[dict[str, Any]]:
    """Team leads below the second layer, and their teams; larger in operations and sales."""
    bosses = [draft.roles[role]["id"] for role, _, _, where in SECOND if where == unit]
    size = rng.randrange(9, 15) if unit in ("Operations", "Sales") else rng.randrange(3, 7)
    made: list[dict[str, Any]] = []
    leads: list[str] = []
    for number in range(size):
        is_lead = number < (2 if size > 6 else 1)
        title = f"{STAFF[unit]} Lead" if is_lead else STAFF[unit]
        person = _person(draft, names, rng, "", title, unit, "G4" if is_lead else "G5", start)
        pairs.append((rng.choice(bosses if is_lead else leads), person["id"]))
        leads += [person["id"]] if is_lead else []
        made.append(person)
    draft.notes.setdefault("teams", {})[unit] = made
    return made


def _leavers(draft: Draft, rng: Random) -> None:
    """Two people without reports give notice in the last half year and leave a month later."""
    staff = [one for team in draft.notes["teams"].values() for one in team if one["grade"] == "G5"]
    for person in rng.sample(staff, NUM_LEAVERS):
        day = draft.setting.today - timedelta(days=rng.randrange(60, 170))
        last = (day + timedelta(days=30)).isoformat()
        draft.event("resignation", day, f"{person['name']} gives notice", person=person["id"], last_day=last)
        draft.truth.close("person", person["id"], valid_to=last)
        for edge in draft.truth.rows("SELECT id FROM org_edge WHERE report_id = :p", p=person["id"]):
            draft.truth.close("org_edge", edge["id"], valid_to=last)
        draft.notes["teams"][person["unit"]].remove(person)


def _headcount(draft: Draft, rng: Random, event: str) -> None:
    rows, fte = [], {(e, u): rng.randrange(12, 90) for e in ("G", "S1", "S2") for u in UNITS}
    for month in draft.setting.months:
        for number, ((entity, unit), count) in enumerate(fte.items()):
            fte[entity, unit] = max(4, count + rng.choice((-1, 0, 0, 0, 1, 1)))
            at = month_end(month).isoformat()
            row_id = f"F{month}-{number}"
            rows.append({"id": row_id, "entity_id": entity, "unit": unit, "month": draft.setting.label(month),
                         "fte": fte[entity, unit], "valid_from": at, "known_from": at})  # fmt: skip
    draft.truth.add("headcount", rows, event=event)


def _outside(draft: Draft, names: list[tuple[str, str]], rng: Random, event: str) -> None:
    firms = pack("firms")
    rows = []
    for role, title, kind, unit in OUTSIDE:
        firm = draft.notes.setdefault("firms", {}).setdefault(kind, rng.choice(firms[kind.replace(" ", "_")]))
        first, last = names.pop()
        domain = "".join(c for c in firm.lower() if c.isalnum()) + ".example"
        draft.roles[role] = {
            "id": draft.next_id("P"), "name": f"{first} {last}", "title": title, "unit": unit, "entity_id": firm,
            "email": f"{_plain(first).lower()}.{_plain(last).lower()}@{domain}", "grade": None, "salary": None,
        }  # fmt: skip
        rows.append(draft.roles[role])
    draft.truth.add("person", rows, event=event, at=month_start(draft.setting.first_month).isoformat())
