"""The reference workbook: 1,549 formulas on three sheets, drawn from seed 2; its values are known independently."""

from __future__ import annotations

import random
from io import BytesIO
from typing import Any

from openpyxl import Workbook

YEARS = "BCDEFGHIJKL"

VECTORS = {
    "DCF!B12": 763871.895223056,
    "DCF!B13": 2150821.748068339,
    "DCF!B14": 1597385.977874747,
    "DCF!B15": 0.15322137877181535,
    "DCF!C15": 444946.60,
    "DCF!D15": 456520.29,
    "DCF!F15": 18607,
    "DCF!G15": -729.7539169690183,
    "DCF!I15": 45107,
    "DCF!J15": 453084.60,
    "Sum!E2": 453084.60,
    "Sum!E3": 444946.60,
    "Sum!E4": 511110.66,
    "Sum!E5": 456520.29,
}


def workbook() -> Workbook:
    """As openpyxl writes it: no cached value at all."""
    rng = random.Random(2)
    book = Workbook()
    data = book.active
    data.title = "Data"
    data.append(["date", "region", "product", "qty", "price", "amount"])
    for row in range(2, 1502):
        month, region, product = rng.randint(1, 12), rng.choice("NSEW"), rng.choice(["A", "B", "C"])
        quantity, price = rng.randint(1, 99), round(rng.random() * 50, 2)
        data.append([f"2025-{month:02d}-15", region, product, quantity, price, f"=D{row}*E{row}"])
    fill_sums(book.create_sheet("Sum"))
    fill_dcf(book.create_sheet("DCF"))
    return book


def fill_sums(sheet: Any) -> None:
    for column, product in zip("BCD", "ABC", strict=True):
        sheet[f"{column}1"] = product
    for row, region in enumerate("NSEW", start=2):
        sheet[f"A{row}"] = region
        for column in "BCD":
            where = f"Data!$B$2:$B$1501,$A{row},Data!$C$2:$C$1501,{column}$1"
            sheet[f"{column}{row}"] = f"=SUMIFS(Data!$F$2:$F$1501,{where})"
        sheet[f"E{row}"] = f"=SUM(B{row}:D{row})"


def fill_dcf(sheet: Any) -> None:
    for position, column in enumerate(YEARS):
        sheet[f"{column}1"] = 2025 + position
        sheet[f"{column}2"] = f"={YEARS[position - 1]}2*(1+$B$10)" if position else "=Sum!E2"
        sheet[f"{column}3"] = f"={column}2*0.2"
    sheet["B10"], sheet["B11"] = 0.05, 0.09
    sheet["B12"], sheet["B13"] = "=NPV(B11,B3:L3)", "=L3*(1+0.02)/(B11-0.02)"
    sheet["B14"], sheet["B15"] = "=B12+B13/(1+B11)^11", "=IRR(B16:B20)"
    for row, flow in enumerate((-1000, 300, 400, 500, 200), start=16):
        sheet[f"B{row}"] = flow
    sheet["H16"], sheet["H17"] = 45000, 45400
    sheet["C15"] = '=IFERROR(VLOOKUP("S",Sum!A2:E5,5,FALSE),0)'
    sheet["D15"] = '=INDEX(Sum!E2:E5,MATCH("W",Sum!A2:A5,0))'
    sheet["E15"] = '=TEXT(B14,"0.0")'
    sheet["F15"] = '=SUMPRODUCT((Data!B2:B1501="N")*(Data!D2:D1501))'
    sheet["G15"] = "=XNPV(0.1,B16:B17,H16:H17)"
    sheet["I15"] = "=EOMONTH(H16,3)"
    sheet["J15"] = '=_xlfn.XLOOKUP("N",Sum!A2:A5,Sum!E2:E5)'


def saved(book: Workbook) -> bytes:
    out = BytesIO()
    book.save(out)
    return out.getvalue()
