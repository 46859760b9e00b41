"""A terminal's screen as text: enough of an xterm for shells, pagers and editors. State: cells, cursor, history."""

from __future__ import annotations

import codecs
import re
import unicodedata
from collections import deque

_HISTORY_LINES = 5000
_CSI = re.compile(r"\x1b\[([?>!=]?)([0-9;:]*)([ -/]*)([@-~])")
_OSC = re.compile(r"\x1b[\]P^_][^\x07\x1b]*(?:\x07|\x1b\\)")
_CHARSET = re.compile(r"\x1b[()*+#%][0-9A-Za-z@]")
_INCOMPLETE = re.compile(r"\x1b(?:\[[?>!=]?[0-9;:]*[ -/]*|[\]P^_][^\x07\x1b]*\x1b?|[()*+#%])?\Z")
_MAX_PENDING = 4096


class Screen:
    """``columns`` x ``rows`` cells and the lines that scrolled off them."""

    def __init__(self, columns: int, rows: int) -> None:
        self.columns, self.rows = columns, rows
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._history: deque[str] = deque(maxlen=_HISTORY_LINES)
        self._cells = self._blank_cells()
        self._other: list[list[str]] | None = None  # the main screen while the alternate one is shown
        self._x = self._y = 0
        self._saved = (0, 0)
        self._top, self._bottom = 0, rows - 1
        self._pending = ""

    def feed(self, data: bytes) -> bytes:
        """Take output of a program; returns what a terminal answers to it."""
        text = self._pending + self._decode(data)
        self._pending = ""
        answers: list[str] = []
        at = 0
        while at < len(text):
            if text[at] != "\x1b":
                self._put(text[at])
                at += 1
                continue
            csi = _CSI.match(text, at)
            if csi is not None:
                answers.append(self._control(csi[1], csi[2], csi[4]))
                at = csi.end()
                continue
            other = _OSC.match(text, at) or _CHARSET.match(text, at)
            if other is not None:
                at = other.end()
                continue
            if _INCOMPLETE.match(text, at) and len(text) - at < _MAX_PENDING:
                self._pending = text[at:]
                break
            self._escape(text[at + 1 : at + 2])
            at += 2
        return "".join(answers).encode()

    def visible(self) -> str:
        """The screen, without blanks at the ends of lines and without empty lines at its end."""
        return "\n".join(self._lines()).rstrip("\n")

    def everything(self) -> str:
        """History and screen."""
        return "\n".join([*self._history, *self._lines()]).rstrip("\n")

    def _lines(self) -> list[str]:
        return ["".join(row).rstrip() for row in self._cells]

    def _blank_cells(self) -> list[list[str]]:
        return [[" "] * self.columns for _ in range(self.rows)]

    def _put(self, letter: str) -> None:
        if letter == "\n" or letter in "\x0b\x0c":
            self._line_feed()
        elif letter == "\r":
            self._x = 0
        elif letter == "\b":
            self._x = max(0, min(self._x, self.columns - 1) - 1)
        elif letter == "\t":
            self._x = min(self.columns - 1, (self._x // 8 + 1) * 8)
        elif letter >= " " and letter != "\x7f":
            self._print(letter)

    def _print(self, letter: str) -> None:
        if unicodedata.combining(letter) and self._x:
            row = self._cells[self._y]
            row[self._x - 1] += letter
            return
        width = 2 if unicodedata.east_asian_width(letter) in "WF" else 1
        if self._x + width > self.columns:
            self._x = 0
            self._line_feed()
        self._cells[self._y][self._x] = letter
        if width == 2:
            self._cells[self._y][self._x + 1] = ""
        self._x += width

    def _line_feed(self) -> None:
        if self._y == self._bottom:
            self._scroll_up(1)
        elif self._y < self.rows - 1:
            self._y += 1

    def _scroll_up(self, count: int) -> None:
        for _ in range(min(count, self.rows)):
            gone = self._cells.pop(self._top)
            if self._top == 0 and self._other is None:
                self._history.append("".join(gone).rstrip())
            self._cells.insert(self._bottom, [" "] * self.columns)

    def _scroll_down(self, count: int, top: int) -> None:
        for _ in range(min(count, self.rows)):
            self._cells.pop(self._bottom)
            self._cells.insert(top, [" "] * self.columns)

    def _escape(self, letter: str) -> None:
        if letter == "7":
            self._saved = (self._x, self._y)
        elif letter == "8":
            self._x, self._y = self._saved
        elif letter == "D":
            self._line_feed()
        elif letter == "E":
            self._x = 0
            self._line_feed()
        elif letter == "M":
            if self._y == self._top:
                self._scroll_down(1, self._top)
            else:
                self._y = max(0, self._y - 1)
        elif letter == "c":
            self._cells, self._x, self._y = self._blank_cells(), 0, 0
            self._top, self._bottom = 0, self.rows - 1

    def _control(self, mark: str, words: str, verb: str) -> str:
        """One CSI sequence; returns what the terminal answers."""
        numbers = [int(word[:6]) if word.isdigit() else 0 for word in re.split("[;:]", words)]
        first = min(numbers[0], 9999)
        n = max(1, first)
        if mark == "?":
            if verb in "hl" and {47, 1047, 1049} & set(numbers):
                self._alternate(verb == "h")
            return ""
        if verb == "n" and first == 6:
            return f"\x1b[{self._y + 1};{min(self._x, self.columns - 1) + 1}R"
        if verb == "c" and not mark:
            return "\x1b[?6c"
        if not mark and not self._move(verb, n, numbers):
            self._edit(verb, first, n, numbers)
        return ""

    def _move(self, verb: str, n: int, numbers: list[int]) -> bool:
        second = max(1, numbers[1]) if len(numbers) > 1 else 1
        x, y = min(self._x, self.columns - 1), self._y
        moved = {
            "A": (x, y - n),
            "B": (x, y + n),
            "C": (x + n, y),
            "D": (x - n, y),
            "E": (0, y + n),
            "F": (0, y - n),
            "G": (n - 1, y),
            "`": (n - 1, y),
            "d": (x, n - 1),
            "H": (second - 1, n - 1),
            "f": (second - 1, n - 1),
            "u": self._saved,
        }.get(verb)
        if verb == "s":
            self._saved = (x, y)
        if moved is None:
            return verb == "s"
        self._x = max(0, min(moved[0], self.columns - 1))
        self._y = max(0, min(moved[1], self.rows - 1))
        return True

    def _edit(self, verb: str, first: int, n: int, numbers: list[int]) -> None:
        x, y = min(self._x, self.columns - 1), self._y
        row = self._cells[y]
        count = min(n, self.columns - x)
        if verb == "J":
            rows = {0: range(y + 1, self.rows), 1: range(y), 2: range(self.rows), 3: range(0)}.get(first, range(0))
            for number in rows:
                self._cells[number] = [" "] * self.columns
            if first in (0, 1):
                self._edit("K", first, n, numbers)
            if first == 3:
                self._history.clear()
        elif verb == "K":
            start, end = {0: (x, self.columns), 1: (0, x + 1), 2: (0, self.columns)}.get(first, (0, 0))
            row[start:end] = [" "] * (end - start)
        elif verb == "X":
            row[x : x + count] = [" "] * count
        elif verb == "P":
            self._cells[y] = row[:x] + row[x + count :] + [" "] * count
        elif verb == "@":
            self._cells[y] = (row[:x] + [" "] * count + row[x:])[: self.columns]
        elif verb in "LM" and self._top <= y <= self._bottom:
            for _ in range(min(n, self.rows)):
                gone, new = (self._bottom, y) if verb == "L" else (y, self._bottom)
                self._cells.pop(gone)
                self._cells.insert(new, [" "] * self.columns)
        elif verb == "S":
            self._scroll_up(n)
        elif verb == "T":
            self._scroll_down(n, self._top)
        elif verb == "r":
            bottom = numbers[1] if len(numbers) > 1 and numbers[1] else self.rows
            if n < bottom <= self.rows:
                self._top, self._bottom, self._x, self._y = n - 1, bottom - 1, 0, 0

    def _alternate(self, is_shown: bool) -> None:
        if is_shown and self._other is None:
            self._other, self._cells = self._cells, self._blank_cells()
            self._saved = (self._x, self._y)
        elif not is_shown and self._other is not None:
            self._cells, self._other = self._other, None
            self._x, self._y = self._saved
