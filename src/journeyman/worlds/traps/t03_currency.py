"""T3: several currencies, and two kinds of rates for them."""

from __future__ import annotations

from random import Random

from journeyman.worlds.draft import Draft
from journeyman.worlds.plan import Planted
from journeyman.worlds.traps.operator import Operator

FOREIGN = 5


def apply(draft: Draft, rng: Random) -> list[Planted]:
    """Most peers report in other currencies; income needs average, balances need closing rates."""
    setting = draft.setting
    others = sorted({row["pair"].split("/")[0] for row in draft.truth.rows("SELECT DISTINCT pair FROM fx_rate")})
    planted = []
    for peer in rng.sample(draft.notes["comps"], FOREIGN):
        peer["currency"] = rng.choice(others)
        draft.truth.recode("comp_company", peer["id"], "currency", peer["currency"])
        average, close = rates(draft, peer["currency"])
        pair = f"{peer['currency']}/{setting.currency}"
        last = setting.label(setting.months[-1])
        planted.append(
            Planted(
                "T3",
                f"peer:{peer['id']}",
                (f"peer:{peer['id']}:revenue", f"fx:{pair}:{last}:avg", f"fx:{pair}:{last}:close"),
                {
                    "revenue": peer["revenue"],
                    "revenue_at_close": round(peer["revenue"] * close),
                    "net_debt_at_average": round(peer["net_debt"] * average),
                },
                {
                    "revenue": round(peer["revenue"] * average),
                    "revenue_at_close": round(peer["revenue"] * average),
                    "net_debt_at_average": round(peer["net_debt"] * close),
                },
                (f"peer:{peer['id']}:revenue",),
            )
        )
    return planted


def rates(draft: Draft, currency: str) -> tuple[float, float]:
    """Mean of the last twelve monthly averages, and the last closing rate, against the group's currency."""
    pair = f"{currency}/{draft.setting.currency}"
    first = draft.setting.label(draft.setting.months[-12])
    means = draft.truth.rows(
        "SELECT rate FROM fx_rate WHERE pair = :p AND kind = 'avg' AND substr(date, 1, 7) >= :m", p=pair, m=first
    )
    close = draft.truth.value(
        "SELECT rate FROM fx_rate WHERE pair = :p AND kind = 'close' ORDER BY date DESC LIMIT 1", p=pair
    )
    return sum(row["rate"] for row in means) / len(means), float(close)


T3 = Operator("T3", "currency mix, average and closing rates", "truth", apply)
