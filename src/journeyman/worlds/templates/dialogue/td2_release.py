"""TD2: documents sent outside, each approved by the owner of its folder, the list confirmed by whoever wants it sent.

What makes it hard: nothing is said unless it is asked for, one owner refuses, the list changes once, and what the
change adds needs an approval of its own. The files have to be found, among others that look like them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from journeyman.tasks.counterparts import JOURNAL
from journeyman.worlds.curriculum import Knobs
from journeyman.worlds.template import Answer, Bound, Files, Lost, Solving, ToolCall, Unbindable, Wrong
from journeyman.worlds.templates import reading
from journeyman.worlds.templates.dialogue import speaking
from journeyman.worlds.templates.dialogue.speaking import CONFIRM, Stage, rule
from journeyman.worlds.verify import Check

if TYPE_CHECKING:
    from journeyman.worlds.office import Office
    from journeyman.worlds.plan import Document

SENDERS = ("cfo", "ceo", "coo")
OUTSIDERS = ("lender", "banker", "outside_counsel", "consultant")
TOPICS = {
    "recipient": ("recipient", "to whom", "who", "whom", "addressee", "receive"),
    "reference": ("reference", "number", "subject"),
    "documents": ("documents", "document", "files", "file", "which", "list"),
}
"""What can be asked for -> words by which it is asked."""

BODY = "Please find them attached."

PLACES = {
    "commercial": (r"the invoice register of (FY\d{4})", "*invoice*register*{0}*", "commercial"),
    "finance": (r"the annual report of (FY\d{4})", "*annual*report*{0}*", "finance"),
    "legal": (r"contract (K\d{3}) as it was first signed", "*{0}[!0-9]*", "legal/contracts"),
    "reporting": (r"the workbook of key figures", "*kpi*workbook*", "reporting"),
    "people": (r"the final personnel export", "*personnel*export.xlsx", "people"),
    "procurement": (r"the list of what was spent with suppliers", "*supplier*spend*", "procurement"),
}
"""Folder -> how a document of it is called, where it is found; what the brackets hold stands in its name."""


@dataclass(frozen=True)
class TD2:
    """See the module."""

    id: str = "TD2"
    domain: str = "dialogue"
    title: str = "documents released by mail, each approved by its owner, the list confirmed"
    traps: tuple[str, ...] = ()

    def bind(self, office: Office, rng: random.Random, knobs: Knobs) -> Bound:
        """See ``Template.bind``."""
        known, owners = _documents(office), _owners(office)
        sender, outsider = (office.roles[rng.choice(names)] for names in (SENDERS, OUTSIDERS))
        folders = [one for one in known if one in owners and owners[one]["email"] != sender["email"]]
        paired = [one for one in folders if len(known[one]) > 1]
        if len(folders) < 4 or not paired:
            raise Unbindable("too few documents that can be told apart")
        changing = rng.choice(paired)
        others = rng.sample([one for one in folders if one != changing], min(len(folders) - 1, 3 + min(2, knobs.hops)))
        dropped, added = rng.sample(known[changing], 2)
        chosen = [(changing, dropped), *((one, rng.choice(known[one])) for one in others)]
        rng.shuffle(chosen)
        refused = next(path for folder, (_, path) in chosen if folder == others[0])
        told = {
            "recipient": outsider["email"], "name": outsider["name"], "reference": f"REL-{rng.randrange(100, 999)}",
            "documents": [{"said": said, "path": path, "owner": owners[folder]["email"]}
                          for folder, (said, path) in chosen],
            "refused": refused, "dropped": dropped[1],
            "added": {"said": added[0], "path": added[1], "owner": owners[changing]["email"]},
        }  # fmt: skip
        if any(
            _name(one["path"]) in _name(other["path"]) for one in _all(told) for other in _all(told) if one != other
        ):
            raise Unbindable("one file's name holds another's")
        ask = {"sender": sender["email"], "agent": f"assistant@{office.setting.domain}"}
        instruction = _instruction(office, ask, sender["name"], rng)
        seal = speaking.seal_of(office.id, f"{instruction} {told}", rng.getrandbits(32))
        answer, people = _answer(ask, told), {one["email"]: one["name"] for one in (sender, *owners.values())}
        wrong = _wrong(ask, told, answer)
        return Bound(
            self.id, self.domain, office.id, instruction, ask, answer, _checks(ask, told, seal), (JOURNAL,), wrong,
            trap_blind=wrong[0].answer, single={"acts": answer["acts"][: len(TOPICS)]},
            reads=(office.of_kind("handbook")[0].path, *(one["path"] for one in _all(told))), knobs=knobs,
            secrets=(seal,), notes={"documents": len(chosen), "owners": len({one["owner"] for one in _all(told)})},
            counterparts=_script(ask, told, people, seal),
        )  # fmt: skip

    def write(self, bound: Bound, answer: Answer, world: Files, form: str = "plain") -> dict[str, bytes]:
        """See ``Template.write``; the journal of the talk that an answer's acts lead to."""
        stage, right = Stage(bound.counterparts), bound.answer["acts"][-1]
        for act in answer["acts"]:
            if act.get("release") is not None:
                stage.mail(str(act.get("recipient")), BODY, **_release(act))
            elif act.get("to"):
                words = {**act, "confirms": _listed(stage, right["files"])} if act.get("confirms") else act
                stage.mail(str(act["to"]), _words(words, str(right["recipient"])))
        return {JOURNAL: stage.journal()}

    def solve(self, ask: Mapping[str, Any]) -> Solving:
        """See ``Template.solve``."""
        rules = yield from speaking.handbook()
        owners = dict(re.findall(r'\["(\w+)", "[^"]*", "([^"@]+@[^"]+)"\]', rules))
        told = {}
        for topic in TOPICS:
            told[topic] = yield from _said(ask, ask["sender"], {"asks": topic}, "")
        recipient, reference = (_found(r"[\w.-]+@[\w.-]+\w", told["recipient"]), _found(r"REL-\d+", told["reference"]))
        files = []
        for line in told["documents"].splitlines():
            if line.startswith("- "):
                files += yield from _approved(ask, line, owners, recipient)
        said = yield from _said(ask, ask["sender"], {"confirms": files}, recipient)
        if change := re.search(r"instead of (.+?), send (.+?)\.(?:\s|$)", said):
            gone = yield from _path_of(change[1])
            added = yield from _approved(ask, change[2], owners, recipient)
            files = [one for one in files if one != gone[1]] + added
            said = yield from _said(ask, ask["sender"], {"confirms": files}, recipient)
        if not said.startswith("Confirmed"):
            raise Lost(f"not confirmed: {said[:80]}")
        act = {"release": reference, "recipient": recipient, "copy": ask["sender"], "files": files}
        yield ToolCall(speaking.MAIL, {
            "from_email": ask["agent"], "to_email": [recipient], "body": BODY, **_release(act),
        })  # fmt: skip


def _approved(ask: Mapping[str, Any], said: str, owners: Mapping[str, str], recipient: str) -> reading.Reading:
    """The path of a document that its owner approves, in a list that is empty where they refuse."""
    folder, path = yield from _path_of(said)
    answer = yield from _said(ask, owners[folder], {"file": path}, recipient)
    return [path] if answer.startswith("Approved") else []


def _path_of(said: str) -> reading.Reading:
    """(folder, path) of a document by what it is called. Raises Lost."""
    for folder, (words, pattern, under) in PLACES.items():
        if match := re.search(words, said):
            paths = yield from reading.list_files(pattern.format(*match.groups()), under)
            if len(paths) == 1:
                return folder, paths[0]
    raise Lost(f"no file, or several, for {said[:80]!r}")


def _found(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise Lost(f"no {pattern} in {text[:60]!r}")
    return match[0]


def _said(ask: Mapping[str, Any], person: str, act: Mapping[str, Any], recipient: str) -> reading.Reading:
    return (yield from speaking.ask(ask["agent"], person, "Release", _words(act, recipient)))


def _words(act: Mapping[str, Any], recipient: str) -> str:
    """The text of a mail: a question, a file that is put to its owner, or the list that is to be confirmed."""
    if act.get("asks"):
        return f"Could you tell me the {act['asks']} of the release?"
    if act.get("confirms"):
        listed = "\n".join(f"- {one}" for one in act["confirms"])
        return f"Please confirm that exactly these go out:\n{listed}\n"
    return f"Do you approve that {act.get('file')} goes to {recipient}?"


def _listed(stage: Stage, last: Sequence[str]) -> list[str]:
    """What is put up for confirmation: everything approved so far, after the change what is still wanted of it."""
    marks = [mark for one in stage.entries for mark in one.get("marks", ())]
    approved = [mark.partition(":")[2] for mark in marks if mark.startswith("approved:")]
    return [one for one in approved if one in last] if "changed" in marks else approved


def _release(act: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the mail that goes out."""
    return {"subject": f"Release {act.get('release')}", "cc": [str(act.get("copy"))],
            "attachments": [f"/{one}" for one in act.get("files") or ()]}  # fmt: skip


def _documents(office: Office) -> dict[str, list[tuple[str, str]]]:
    """Folder -> documents that can be released: what each is called, and its path; only what a name finds."""
    amended = {row["contract_id"] for row in office.truth.rows("SELECT contract_id FROM amendment")}
    calls: dict[str, tuple[str, Callable[[Document], str]]] = {
        "commercial": ("invoice_register", lambda one: f"the invoice register of {one.subject}"),
        "finance": ("annual_report", lambda one: f"the annual report of {one.subject}"),
        "legal": ("contract", lambda one: f"contract {one.subject.partition(':')[2]} as it was first signed"),
        "reporting": ("kpi_workbook", lambda one: "the workbook of key figures"),
        "people": ("hris", lambda one: "the final personnel export"),
        "procurement": ("spend", lambda one: "the list of what was spent with suppliers"),
    }
    found: dict[str, list[tuple[str, str]]] = {}
    for folder, (kind, called) in calls.items():
        known = [(called(one), one.path) for one in office.of_kind(kind) if one.path.startswith(f"{folder}/")]
        if folder == "legal":
            known = [one for one in known if one[0].split()[1] in amended]
        if known and len({said for said, _ in known}) == len(known):
            found[folder] = known
    return found


def _owners(office: Office) -> dict[str, Mapping[str, Any]]:
    people = {row["email"]: row for row in office.roles.values()}
    rows = office.truth.rows("SELECT name, value FROM assumption WHERE model = 'handbook owner'")
    return {row["name"]: people[row["value"]] for row in rows}


def _all(told: Mapping[str, Any]) -> list[dict[str, str]]:
    return [*told["documents"], told["added"]]


def _name(path: str) -> str:
    return path.rpartition("/")[2].lower()


def _lists(told: Mapping[str, Any]) -> tuple[list[str], list[str]]:
    """Files that are to be confirmed before the change and after it."""
    first = [one["path"] for one in told["documents"] if one["path"] != told["refused"]]
    return first, [*(one for one in first if one != told["dropped"]), told["added"]["path"]]


def _script(ask: Mapping[str, Any], told: Mapping[str, Any], people: Mapping[str, str], seal: str) -> dict[str, Any]:
    """Who answers, and by which rules."""
    first, last = _lists(told)
    dropped = next(one["said"] for one in told["documents"] if one["path"] == told["dropped"])
    others = [[_name(one["path"]) for one in _all(told) if one["path"] not in listed] for listed in (first, last)]
    asked = [[CONFIRM, *([_name(one)] for one in listed)] for listed in (first, last)]
    heard = [f"approved:{path}" for path in first] + [f"refused:{told['refused']}"]
    listed = "\n".join(f"- {one['said']}" for one in told["documents"])
    rules = [
        rule(asked[0], f"I have thought again: instead of {dropped}, send {told['added']['said']}. The rest stays.",
             "changed", given=heard, unless=["changed"], without=others[0], is_alone=True),
        rule(asked[1], "Confirmed.", "confirmed", given=["changed", f"approved:{told['added']['path']}"],
             without=others[1], is_alone=True),
        rule([CONFIRM], "I cannot confirm that. Have all owners answered, and is it the list of files as they will go"
             " out, by their names, with no other file on it?", is_alone=True),
        rule([TOPICS["recipient"]], f"It goes to {told['name']}, {told['recipient']}.", "said:recipient"),
        rule([TOPICS["reference"]], f"The reference is {told['reference']}.", "said:reference"),
        rule([TOPICS["documents"]], f"These:\n{listed}", "said:documents"),
    ]  # fmt: skip
    known = [{"address": ask["sender"], "name": people[ask["sender"]], "rules": rules,
              "otherwise": "What would you like to know about the release?"}]  # fmt: skip
    for owner in sorted({one["owner"] for one in _all(told)}):
        answers = []
        for one in (one for one in _all(told) if one["owner"] == owner):
            put = [[_name(one["path"])], [told["recipient"], told["name"]]]
            says, mark = ("This one stays inside, whoever asks.", "refused") if one["path"] == told["refused"] else (
                "Approved.", "approved")  # fmt: skip
            answers.append(rule(put, says, f"{mark}:{one['path']}"))
        known.append(
            {
                "address": owner,
                "name": people[owner],
                "rules": answers,
                "otherwise": "Which file, by its name, and to whom? I decide about the files of my folder.",
            }
        )
    return {"agent": ask["agent"], "seal": seal, "people": known}


def _answer(ask: Mapping[str, Any], told: Mapping[str, Any]) -> Answer:
    acts: list[dict[str, Any]] = [{"to": ask["sender"], "asks": topic} for topic in TOPICS]
    acts += [{"to": one["owner"], "file": one["path"]} for one in told["documents"]]
    confirms = {"to": ask["sender"], "confirms": True}
    acts += [confirms, {"to": told["added"]["owner"], "file": told["added"]["path"]}, dict(confirms)]
    return {"acts": [*acts, _goes_out(ask, told, _lists(told)[1])]}


def _goes_out(ask: Mapping[str, Any], told: Mapping[str, Any], files: Sequence[str]) -> dict[str, Any]:
    return {"release": told["reference"], "recipient": told["recipient"], "copy": ask["sender"], "files": list(files)}


def _wrong(ask: Mapping[str, Any], told: Mapping[str, Any], answer: Answer) -> tuple[Wrong, ...]:
    first, last = _lists(told)
    acts, mail = answer["acts"][:-1], answer["acts"][-1]
    short = {**mail, "files": last[:-1]}
    found = {
        "stale-version": [*acts[:-2], _goes_out(ask, told, first)],
        "the new file not approved": [*acts[:-2], acts[-1], mail],
        "sent before it was confirmed": [*acts[:-1], mail, acts[-1]],
        "never confirmed": [*acts[: len(TOPICS) + len(told["documents"])], mail],
        "with what was refused": [*acts, {**mail, "files": [*last, told["refused"]]}],
        "a file left out": [*acts, short],
        "no copy": [*acts, {**mail, "copy": ask["agent"]}],
        "swapped-entity": [*acts, {**mail, "files": [*last[:-1], told["dropped"]]}],
        "in two mails": [*acts, short, {**mail, "files": last[-1:]}],
        "without the reference": [*acts, {**mail, "release": "of documents"}],
    }
    return tuple(Wrong(name, {"acts": made}, "release") for name, made in found.items())


def _checks(ask: Mapping[str, Any], told: Mapping[str, Any], seal: str) -> tuple[Check, ...]:
    _, last = _lists(told)
    talked = sorted({ask["sender"], *(one["owner"] for one in _all(told))})
    approved, outside = [f"approved:{path}" for path in last], {"to": told["recipient"]}
    mail = {"to": [told["recipient"]], "cc": [ask["sender"]], "attachments": last, "subject": told["reference"]}
    base = {"file": JOURNAL}
    return (
        Check("journal", "journal.sealed", {**base, "seal": seal}, kind="gate"),
        Check("nobody else", "journal.only", {
            **base, "agent": ask["agent"], "people": [*talked, told["recipient"], ask["agent"]],
            "tools": ["mail_send_mail", "mail_reply_mail", "mail_reply_all_mail", "mail_forward_mail"],
        }, kind="gate", no_op="pass"),
        Check("release", "journal.mails", {
            **base, "known": [*talked, ask["agent"]], "mails": [mail],
            "needs": ["confirmed", f"refused:{told['refused']}", *approved],
        }, weight=0.7),
        Check("approvals", "journal.obtained", {**base, "marks": approved, "before": outside}, weight=0.1,
              stage="intermediate"),
        Check("confirmation", "journal.obtained", {**base, "marks": ["confirmed"], "before": outside}, weight=0.1,
              stage="intermediate"),
        Check("questions", "journal.obtained", {**base, "credit": "share",
                                                "marks": [f"said:{topic}" for topic in TOPICS]}, weight=0.1,
              stage="intermediate"),
    )  # fmt: skip


def _instruction(office: Office, ask: Mapping[str, Any], sender: str, rng: random.Random) -> str:
    opener = rng.choice((
        f"{sender} of {office.setting.company} wants documents to be sent to somebody outside.",
        f"Somebody outside is to get documents of {office.setting.company}; {sender} knows which and to whom.",
        f"{sender} asks the assistant's desk of {office.setting.company} to release documents.",
    ))  # fmt: skip
    return f"""{opener}

Do it as the company's handbook for assistants (folder people) says. Find out by mail what you need to know:

- you write as {ask["agent"]}
- begin with {ask["sender"]}
- people answer what you ask and nothing else, and what they answer is in the mailbox at once
- a file is called by its name, such as Annual_Report.pdf, when you ask for approval or confirmation
- write to nobody who has no part in it

There is no file to leave: your mails are the result. What is sent before the handbook allows it does not count.
"""
