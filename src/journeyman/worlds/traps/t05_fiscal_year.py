"""T5: fiscal years that are not calendar years, and differ between companies."""

from __future__ import annotations

from datetime import timedelta
from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.simulate.calendars import month_end
from journeyman.worlds.simulate.figures import figures_at, labels
from journeyman.worlds.simulate.reporting import HALF_DAYS
from journeyman.worlds.traps.operator import Operator

SHIFTED = 5
DECEMBER = 12


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Peers get fiscal years that end in other months; the figure of a calendar year is a weighted one."""
    planted = []
    for peer in rng.sample(draft.notes["comps"], SHIFTED):
        peer["fiscal_year_end"] = rng.choice((3, 6, 9))
        draft.truth.recode("comp_company", peer["id"], "fiscal_year_end", peer["fiscal_year_end"])
        share = peer["fiscal_year_end"] / 12
        right = {
            name: round(share * peer[f"{name}_prior"] + (1 - share) * peer[name]) for name in ("revenue", "ebitda")
        }
        planted.append(
            Planted(
                "T5",
                f"peer:{peer['id']}",
                tuple(f"peer:{peer['id']}:{n}" for n in ("revenue", "revenue_prior")),
                {name: peer[name] for name in right},
                right,
                (f"peer:{peer['id']}:revenue",),
            )
        )
    return [*planted, _quarters(draft), *_calendar_years(draft)]


def _quarters(draft: Draft) -> Planted:
    """The last four quarters of a test date are not the last fiscal year."""
    setting = draft.setting
    year, last = setting.years[-1], setting.years[-1] + 1
    facts = tuple(f"income:group:{q}:ebitda" for q in (f"Q3 FY{year}", f"Q4 FY{year}", f"Q1 FY{last}", f"Q2 FY{last}"))
    return Planted("T5", f"quarters:FY{last}", facts, {"period": f"FY{year}"}, {"period": f"Q2 FY{last}"},
                   (f"income:group:FY{year}:ebitda",))  # fmt: skip


def _calendar_years(draft: Draft) -> list[Planted]:
    """Interim reports show a calendar year beside the half years; what is bridged is the fiscal year. None where both
    are one."""
    setting, planted = draft.setting, []
    if setting.year_end_month == DECEMBER:
        return []
    for year in setting.years[-2:]:
        last = setting.year_months(year + 1)[5]
        shown = (last + 1) // 12 - 1
        draft.notes.setdefault("calendar years", {})[year + 1] = shown
        figures = figures_at(draft, (month_end(last) + timedelta(days=HALF_DAYS)).isoformat())
        wrong, right = (
            figures.income(labels(draft, months)).revenue
            for months in (range(12 * shown, 12 * shown + 12), setting.year_months(year))
        )
        planted.append(
            Planted("T5", f"ltm:FY{year}", (f"half:FY{year + 1}:end", f"income:group:FY{year}:revenue"),
                    {"revenue": wrong}, {"revenue": right}, (f"calendar:{shown}:revenue",))
        )  # fmt: skip
    return planted


T5 = Operator("T5", "fiscal and calendar year", "truth", apply)
