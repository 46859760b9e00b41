"""What stands around numbers: currencies, scale words, units, and how locales write separators."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

THIN = "\u202f"
NO_BREAK = "\u00a0"


@dataclass(frozen=True, slots=True)
class Locale:
    """How numbers and dates are written.

    Attributes:
        decimal: separator before the fraction.
        group: separator between groups of digits.
        is_indian: the last group has three digits, the others two.
        order: of day, month and year in a date of numbers: ``dmy``, ``mdy`` or ``ymd``.
        dollar, krone: which currency ``$`` and ``kr`` mean.
    """

    decimal: str
    group: str
    is_indian: bool = False
    order: str = "dmy"
    dollar: str = "USD"
    krone: str = ""


LOCALES: dict[str, Locale] = {
    "en-US": Locale(".", ",", order="mdy"),
    "en-GB": Locale(".", ","),
    "en-IN": Locale(".", ",", is_indian=True),
    "en-AU": Locale(".", ",", dollar="AUD"),
    "en-CA": Locale(".", ",", order="ymd", dollar="CAD"),
    "hi-IN": Locale(".", ",", is_indian=True),
    "ja-JP": Locale(".", ",", order="ymd"),
    "zh-CN": Locale(".", ",", order="ymd"),
    "de-DE": Locale(",", "."),
    "de-CH": Locale(".", "’"),
    "de-AT": Locale(",", NO_BREAK),
    "fr-FR": Locale(",", THIN),
    "it-IT": Locale(",", "."),
    "es-ES": Locale(",", "."),
    "pt-BR": Locale(",", "."),
    "nl-NL": Locale(",", "."),
    "pl-PL": Locale(",", NO_BREAK),
    "sv-SE": Locale(",", NO_BREAK, order="ymd", krone="SEK"),
    "nb-NO": Locale(",", NO_BREAK, krone="NOK"),
    "da-DK": Locale(",", ".", krone="DKK"),
}
"""Tag -> conventions. A language alone means the first tag that begins with it."""


def locale_of(tag: str) -> Locale:
    """The conventions of a tag such as ``de-DE``, ``de_DE`` or ``de``. Raises KeyError for others."""
    wanted = tag.replace("_", "-").lower()
    for known, locale in LOCALES.items():
        if known.lower() == wanted or known.lower().split("-")[0] == wanted:
            return locale
    raise KeyError(f"no locale {tag!r}; known: {', '.join(LOCALES)}")


SIGNS = {
    "US$": "USD",
    "A$": "AUD",
    "AU$": "AUD",
    "C$": "CAD",
    "CA$": "CAD",
    "HK$": "HKD",
    "S$": "SGD",
    "NZ$": "NZD",
    "R$": "BRL",
    "MX$": "MXN",
    "NT$": "TWD",
    "$": "USD",
    "€": "EUR",
    "£": "GBP",
    "¥": "JPY",
    "￥": "JPY",
    "₹": "INR",
    "₩": "KRW",
    "₽": "RUB",
    "₺": "TRY",
    "₪": "ILS",
    "₫": "VND",
    "₱": "PHP",
    "฿": "THB",
    "₴": "UAH",
    "₦": "NGN",
    "zł": "PLN",
    "Kč": "CZK",
    "Ft": "HUF",
    "Fr.": "CHF",
    "SFr.": "CHF",
    "Rs.": "INR",
    "Rs": "INR",
    "kr.": "kr",
    "kr": "kr",
}
"""Sign -> ISO 4217 code; ``kr`` is decided by the locale."""

CODES = frozenset(
    (
        *("USD", "EUR", "GBP", "JPY", "CHF", "AUD", "CAD", "NZD", "CNY", "CNH", "HKD", "SGD"),
        *("INR", "KRW", "BRL", "MXN", "ZAR", "RUB", "TRY", "SEK", "NOK", "DKK", "ISK", "PLN"),
        *("CZK", "HUF", "RON", "BGN", "ILS", "AED", "SAR", "QAR", "KWD", "BHD", "OMR", "EGP"),
        *("NGN", "KES", "GHS", "MAD", "TND", "THB", "VND", "IDR", "MYR", "PHP", "TWD", "PKR"),
        *("BDT", "LKR", "UAH", "KZT", "ARS", "CLP", "COP", "PEN", "UYU", "XAU", "XAG"),
    )
)
"""ISO 4217 codes that are recognised."""

CURRENCY_WORDS = {
    "dollar": "USD",
    "dollars": "USD",
    "euro": "EUR",
    "euros": "EUR",
    "pound": "GBP",
    "pounds": "GBP",
    "sterling": "GBP",
    "yen": "JPY",
    "rupee": "INR",
    "rupees": "INR",
    "yuan": "CNY",
    "renminbi": "CNY",
    "rmb": "CNY",
    "won": "KRW",
    "real": "BRL",
    "reais": "BRL",
    "zloty": "PLN",
    "zlotys": "PLN",
    "francs": "CHF",
    "franken": "CHF",
}
"""Word in lower case -> ISO 4217 code."""
NORDIC = ("SEK", "NOK", "DKK")

THOUSAND, LAKH, MILLION, CRORE = Decimal(1000), Decimal(100_000), Decimal(1_000_000), Decimal(10_000_000)
BILLION, TRILLION = Decimal(10**9), Decimal(10**12)
SCALES = {
    **dict.fromkeys(("k", "thousand", "thousands", "tsd", "tsd.", "ths", "000s", "mille", "tausend", "mil"), THOUSAND),
    **dict.fromkeys(("m", "mm", "mn", "mln", "mio", "mio.", "mill", "million", "millions", "millionen"), MILLION),
    **dict.fromkeys(("milhões", "millones", "milioni"), MILLION),
    **dict.fromkeys(
        ("b", "bn", "bln", "billion", "billions", "mrd", "mrd.", "md", "mds", "milliard", "milliards"), BILLION
    ),
    **dict.fromkeys(("milliarde", "milliarden", "miliardi"), BILLION),
    **dict.fromkeys(("tn", "trn", "trillion", "trillions"), TRILLION),
    **dict.fromkeys(("lakh", "lakhs", "lac", "lacs"), LAKH),
    **dict.fromkeys(("crore", "crores", "cr", "cr."), CRORE),
}
"""Word in lower case -> factor. German ``Billion`` and French ``billion`` (a million millions) are not meant."""
BARE_CASE = {"M": MILLION, "MM": MILLION, "K": THOUSAND, "B": BILLION}
SCALE_OR_UNIT = {"m": "m", "b": "b", "k": "K"}
"""Scale letters that are units as well when no currency says otherwise: metre, bit, kelvin."""

PERCENT = {"%": Decimal("0.01"), "percent": Decimal("0.01"), "pct": Decimal("0.01"), "prozent": Decimal("0.01")}
PERCENT |= {"‰": Decimal("0.001"), "permille": Decimal("0.001")}
PERCENT |= dict.fromkeys(("bp", "bps", "basispoints"), Decimal("0.0001"))
POINTS = {"pp", "ppt", "ppts", "percentagepoints", "percentagepoint"}
TIMES = {"x", "×", "times", "fold"}
FILLERS = {
    "in",
    "of",
    "approx",
    "approx.",
    "approximately",
    "about",
    "around",
    "circa",
    "ca",
    "ca.",
    "c.",
    "~",
    "≈",
    "roughly",
}
