"""Amounts and dates as people write them, read exactly and compared by what they claim.

Promises: units, scales and currencies are read, never stripped; a text with two readings keeps both; the precision that
was written decides what a figure matches; what is no amount is an error and equals nothing. Values are decimals.
"""

from .amount import Amount as Amount
from .amount import NotAnAmount as NotAnAmount
from .amount import parse as parse
from .comparing import Comparison as Comparison
from .comparing import Range as Range
from .comparing import compare as compare
from .comparing import parse_range as parse_range
from .dates import Moment as Moment
from .dates import NotADate as NotADate
from .dates import from_serial as from_serial
from .dates import parse_date as parse_date
from .dates import to_serial as to_serial
from .numerals import written as written
from .words import LOCALES as LOCALES
from .words import Locale as Locale
from .words import locale_of as locale_of
