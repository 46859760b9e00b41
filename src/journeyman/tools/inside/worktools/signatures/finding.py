"""Signatures of search, web, academic, code and output."""

from __future__ import annotations

from .signature import Signature, flag, integer, text, tool

_QUERY = {"query": text("words to find")}
_MOST = integer("most results", default=10, minimum=1, maximum=50)

SEARCH: dict[str, Signature] = {
    "world": tool(
        "Search the text of every file of the world; answers with path, place in the file and the words around.",
        "pure",
        _QUERY,
        {
            "path": text("only below this directory", default="/"),
            "max_results": _MOST,
            "match_all": flag("every word has to occur", default=False),
        },
    ),
}

WEB: dict[str, Signature] = {
    "search": tool(
        "Search the web; answers with title, address, date and snippet.", "probe", _QUERY, {"max_results": _MOST}
    ),
    "visit": tool(
        "Read a web page as text, with its links.",
        "probe",
        {"url": text("address of the page")},
        {
            "offset": integer("characters of the page to skip", default=0, minimum=0),
            "goal": text("what you want to learn; a summariser uses it where one is set up", default=""),
        },
    ),
}

ACADEMIC: dict[str, Signature] = {
    "search": tool(
        "Search papers; answers with title, authors, year, venue, address and abstract.",
        "probe",
        _QUERY,
        {
            "max_results": _MOST,
            "year_from": integer("not older than"),
            "year_to": integer("not newer than"),
        },
    ),
}

CODE: dict[str, Signature] = {
    "exec": tool(
        "Run a shell command line. The world's files are the working directory. For Python: python3 - <<'EOF' ... EOF.",
        "unsafe",
        {"code": text("a shell command line")},
    ),
}

OUTPUT: dict[str, Signature] = {
    "read_page": tool(
        "Read on in a text that was too long for one answer, or in any text file.",
        "pure",
        {"file_path": text("path that the cut answer named")},
        {
            "offset": integer("characters to skip", default=0, minimum=0),
            "limit": integer("most characters", default=15000, minimum=1, maximum=18000),
        },
    ),
}
