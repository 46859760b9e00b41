"""Everyday traffic in mail, chat and calendar, so that what matters has to be found."""

from __future__ import annotations

from datetime import timedelta

from journeyman.worlds.data import pack
from journeyman.worlds.draft import Draft
from journeyman.worlds.truth.store import Row

NUM_CHATS, NUM_MAILS, NUM_MEETINGS = 14, 9, 4


def daily_business(draft: Draft, event: Row) -> None:
    """A month of it."""
    rng, setting, words = draft.rng(f"noise {event['id']}"), draft.setting, pack("noise")
    people = [one for team in draft.notes["teams"].values() for one in team] + [
        draft.roles[r] for r in ("fpa", "sales")
    ]
    customers = draft.notes["customers"]

    def filled(text: str) -> str:
        return text.format(customer=rng.choice(customers)["name"], city=setting.city)

    def day() -> str:
        when = setting.today - timedelta(days=event["payload"]["back"] + rng.randrange(30))
        return (when - timedelta(days=max(0, when.weekday() - 4))).isoformat()

    for _ in range(NUM_CHATS):
        channel = rng.choice(sorted(words["chat"]))
        draft.say(
            event["id"],
            setting.instant(day(), rng),
            channel,
            rng.choice(people),
            filled(rng.choice(words["chat"][channel])),
        )
    for _ in range(NUM_MAILS):
        sender, receiver = rng.sample(people, 2)
        body = rng.choice(words["mail"]["bodies"])
        first = draft.mail(
            event["id"],
            setting.instant(day(), rng),
            sender,
            [receiver],
            filled(rng.choice(words["mail"]["subjects"])),
            f"Dear {receiver['name'].split()[0]},\n\n{filled(body)}\n\n{sender['name']}\n",
        )
        if rng.random() < 0.3:
            draft.mail(
                event["id"],
                first.sent + timedelta(hours=3),
                receiver,
                [sender],
                f"Re: {first.subject}",
                f"Thanks, noted.\n\n{receiver['name']}\n",
                reply_to=first,
            )
    for _ in range(NUM_MEETINGS):
        host, *guests = rng.sample(people, 4)
        draft.meet(
            event["id"],
            setting.instant(day(), rng),
            60,
            rng.choice(words["mail"]["meetings"]),
            "Agenda to follow.",
            host,
            guests,
            rng.choice(("Room 1", "Room 4", "Video call")),
        )
