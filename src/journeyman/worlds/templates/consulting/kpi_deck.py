"""Refreshing the slides of key figures: texts, tables and native charts change, everything else stays.

The module is also what the oracle from files runs with the agent's tools, so it needs python-pptx only.
"""

import io
from typing import Any


def refreshed(data: bytes, plan: dict[str, Any]) -> bytes:
    """A deck with other figures on the slides of some key figures.

    Args:
        data: the deck.
        plan: ``periods``: quarters, oldest first; ``slides``: list of ``{"kpi", "values"}``. A key figure that has no
            slide is written over the title of the deck.
    """
    from pptx import Presentation
    from pptx.chart.data import CategoryChartData

    deck = Presentation(io.BytesIO(data))
    pages = {page.shapes.title.text.lower(): page for page in deck.slides}
    periods = [str(period or "") for period in plan["periods"]]
    for one in plan["slides"]:
        page = pages.get(str(one["kpi"]).lower())
        if page is None:
            deck.slides[0].shapes.title.text_frame.paragraphs[0].runs[0].text = str(one["kpi"])
            continue
        values = [float(value or 0) for value in one["values"]]
        for shape in page.shapes:
            if shape.has_chart:
                made = CategoryChartData()
                made.categories = periods
                made.add_series(shape.chart.plots[0].series[0].name, values)
                shape.chart.replace_data(made)
            elif shape.has_table:
                is_comma = "," in shape.table.cell(1, 1).text
                shown = [f"{value:.1f}".replace(".", "," if is_comma else ".") for value in values]
                for column, (period, text) in enumerate(zip(periods, shown, strict=False), start=1):
                    for row, word in ((0, period), (1, text)):
                        shape.table.cell(row, column).text_frame.paragraphs[0].runs[0].text = word
                first = next(s for s in page.shapes if s.name == "Key messages")
                first.text_frame.paragraphs[0].runs[0].text = f"{periods[-1]}: {shown[-1]}"
            elif shape.name == "Source":
                shape.text_frame.paragraphs[0].runs[0].text = f"Source: KPI workbook {periods[-1]}"
    made_bytes = io.BytesIO()
    deck.save(made_bytes)
    return made_bytes.getvalue()
