"""Notices of events: what was observed, and what still has to be told to whom.

A call notes new events in a file before it sends them, so each is told at least once, always under the same id. What
could not be sent stays in the file, and is sent by a later call.
"""

import json
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Protocol, TypeVar, get_args

from dpcausal.errors import StudyError
from dpcausal.federation.operation.health import BROKEN, LEVELS, Check
from dpcausal.utils.durable_files import locked, replace_file
from dpcausal.utils.plain_text import visible

FILE = "notices.json"
"""What a folder notes about its notices."""
FORMAT = 1

Kind = Literal["waiting", "decision", "debit", "failure", "ending"]
KINDS: tuple[Kind, ...] = get_args(Kind)

_LOCK = ".notices"
_MOST = 20
"""The number of notices of one call: many events at once are told as so many, and a count of the rest."""
_LONGEST = 500
_AT_ONCE, _NEXT_CALL, _HOUR, _DAY = 0.0, 1.0, 3_600.0, 86_400.0
_PATIENCE = {"connected": _HOUR, "clock": _HOUR, "sites": _HOUR, "disk": _HOUR, "mailbox": _DAY}
"""For how long a check must fail before it is told, in seconds. A poller has no contact while it answers, and an answer
needs room on the disk, so a shorter time would tell how long an answer takes."""
_TOLD_OTHERWISE = ("waiting", "budget", "versions")
_DAYS = (30, 7)
"""The days before an end at which it is told."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Notice:
    """One event in words.

    Attributes:
        page: The page of the console about it, as a path.
        study: The digest of the study that it is about; empty where there is none.
    """

    kind: Kind | Literal["test"]
    title: str
    text: str
    page: str = "/"
    study: str = ""


TEST = Notice("test", "a test message", "This is a test: messages of dpcausal notify reach you.")


@dataclass(frozen=True)
class Condition:
    """Something that is so now, and is told when it has begun or has become worse.

    Attributes:
        grade: How bad it is, from 1.
        patience: For how many seconds it must be so before it is told.
    """

    grade: int
    notice: Notice
    patience: float = _AT_ONCE


@dataclass
class Observed:
    """What earlier calls observed.

    Attributes:
        places: How much of each log was read.
        conditions: What was so at the last call, by its name: its grade, since when, and the grade that was told.
        states: The last state of whatever has one, by its name.
        waiting: Messages that were not sent yet, each with the channels that it is still for.
    """

    places: dict[str, int] = field(default_factory=dict)
    conditions: dict[str, dict[str, Any]] = field(default_factory=dict)
    states: dict[str, str] = field(default_factory=dict)
    waiting: list[dict[str, Any]] = field(default_factory=list)
    format: int = FORMAT

    @classmethod
    def read(cls, folder: Path) -> "Observed":
        """Read what was noted; nothing where there is no file."""
        try:
            found = cls(**json.loads((folder / FILE).read_text(encoding="utf-8")))
        except FileNotFoundError:
            return cls()
        except (ValueError, TypeError):
            found = cls(format=0)
        if found.format != FORMAT:
            raise StudyError(
                problem=f"{folder / FILE} is not as this version of dpcausal writes it",
                hint="move the file away: what is so now is told again, and earlier events are not.",
            )
        return found

    def write(self, folder: Path) -> None:
        """Write the notes, durably."""
        replace_file(folder / FILE, json.dumps(asdict(self)))

    def after(self, log: str, items: Sequence[Item], until: Callable[[Item], bool] = lambda _: False) -> list[Item]:
        """Return what a log has after the place that was read, up to the first item for which `until` holds.

        The first call begins at the end of the log.
        """
        start = min(self.places.get(log, len(items)), len(items))
        end = next((place for place in range(start, len(items)) if until(items[place])), len(items))
        self.places[log] = end
        return list(items[start:end])

    def changed(self, name: str, state: str) -> bool:
        """Note a state, and return whether it is another one than before."""
        before, self.states[name] = self.states.get(name), state
        return before != state

    def begun(self, now: Mapping[str, Condition], kept: Sequence[str] = ()) -> Iterator[Notice]:
        """Yield the notices of conditions that have begun, have become worse, or, for a check, are over.

        Args:
            now: All conditions that hold now, by name.
            kept: Beginnings of names of which it is not known whether they hold now.
        """
        at = time.time()
        for name, condition in now.items():
            known = self.conditions.setdefault(name, {"grade": 0, "since": at, "told": 0, "title": ""})
            if known["grade"] != condition.grade:
                known |= {"grade": condition.grade, "since": at, "told": min(known["told"], condition.grade)}
            if condition.grade > known["told"] and at - known["since"] >= condition.patience:
                known |= {"told": condition.grade, "title": condition.notice.title}
                yield condition.notice
        for name in [each for each in self.conditions if each not in now and not each.startswith(tuple(kept))]:
            over = self.conditions.pop(name)
            if over["told"] and name.startswith("check:"):
                text = "This is over: the check is healthy again. Nothing has to be done."
                yield Notice("failure", f"over: {over['title']}", text, "/health")


def conditions_of(checks: Iterable[Check], status: str) -> Iterator[tuple[str, Condition]]:
    """Yield the checks that are not healthy as conditions. Of what was found, only the level is told, and days left."""
    for check in checks:
        if check.name in _TOLD_OTHERWISE or not check.level:
            continue
        if check.name.startswith("certificate"):
            grade = 3 if check.level == BROKEN else grade_of(check.value)
            words = f"ends within {_DAYS[grade - 1]} days" if grade < 3 else "is not valid"
            text = f"Check {check.name}: {check.words}. Renew the certificate: see the page on certificates."
            notice = Notice("ending", f"a certificate {words}", text, "/health")
            yield f"check:{check.name}", Condition(grade, notice)
            continue
        title = f"{check.name.replace('_', ' ')}: {LEVELS[check.level]}"
        if check.name.startswith(("serving", "polling")):
            title = f"the service has stopped ({title})"
        text = f"The check {check.name} is not healthy, but: {LEVELS[check.level]}. Find out why with: {status}"
        patience = next((_PATIENCE[name] for name in _PATIENCE if check.name.startswith(name)), _NEXT_CALL)
        at_once = check.name.startswith(("serving", "polling"))
        notice = Notice("failure", title, text, "/health")
        yield f"check:{check.name}", Condition(check.level, notice, _AT_ONCE if at_once else patience)


def grade_of(days: int) -> int:
    """Return how near an end is: 0 at 30 days or more, 1 below, 2 below 7."""
    return sum(days < each for each in _DAYS)


def today() -> str:
    """Return the day in UTC, as logs have it."""
    return datetime.now(UTC).date().isoformat()


class Channel(Protocol):
    """A way to tell people, or a program, of an event."""

    @property
    def name(self) -> str:
        """What it is called in the notes, and to whom it goes."""
        ...

    @property
    def events(self) -> Sequence[str]:
        """The kinds of events that it tells."""
        ...

    def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; raise OSError where that fails."""


def tell(
    folder: Path,
    name: str,
    address: str,
    channels: Sequence[Channel],
    observe: Callable[[Observed], Iterable[Notice]],
) -> tuple[int, list[str]]:
    """Observe, note what is new, and send all that was not sent; return how many were sent, and what failed.

    Args:
        folder: The folder of the site, or of the coordinator.
        name: What it is called in notices.
        address: The address of its console; empty where there is none.
        channels: Whom to tell.
        observe: Yields the notices of what is new.
    """
    with locked(folder / _LOCK):
        observed = Observed.read(folder)
        notices = list(observe(observed))
        wanted = [each for each in notices if any(each.kind in (*channel.events, "test") for channel in channels)]
        observed.waiting += [_message(each, name, address, channels) for each in _shortened(wanted)]
        names = {channel.name for channel in channels}
        for message in observed.waiting:  # a channel that was removed from the settings is owed nothing
            message["left"] = [each for each in message["left"] if each in names]
        observed.waiting = [each for each in observed.waiting if each["left"]]
        observed.write(folder)
        sent, failed = 0, list[str]()
        for channel in channels:
            due = [each for each in observed.waiting if channel.name in each["left"]]
            for message in sorted(due, key=lambda each: each["tries"]):  # one that is refused does not stop the others
                message["tries"] += 1
                try:
                    channel.send({each: message[each] for each in message if each not in {"left", "tries"}})
                except OSError as error:
                    failed.append(f"{channel.name}: {type(error).__name__} {visible(str(error))[:_LONGEST]}".rstrip())
                    break
                message["left"].remove(channel.name)
                sent += 1
                observed.write(folder)
        observed.waiting = [each for each in observed.waiting if each["left"]]
        observed.write(folder)
        return sent, failed


def _shortened(notices: Sequence[Notice]) -> list[Notice]:
    if len(notices) <= _MOST:
        return list(notices)
    shown, others = notices[: _MOST - 1], notices[_MOST - 1 :]
    titles = ", ".join(sorted({each.kind for each in others}))
    text = f"These came at once, and are not told one by one ({titles}). The console and the status have them all."
    return [*shown, Notice(others[0].kind, f"{len(others):,} more events", text)]


def _message(notice: Notice, name: str, address: str, channels: Sequence[Channel]) -> dict[str, Any]:
    return {
        "id": f"msg_{uuid.uuid4().hex}",
        "kind": notice.kind,
        "at": datetime.now(UTC).isoformat(timespec="seconds"),
        "about": name,
        "title": visible(notice.title)[:_LONGEST].replace("\t", " "),
        "text": "\n".join(visible(line) for line in notice.text.split("\n")),
        "link": f"{address.rstrip('/')}{notice.page}" if address else "",
        "study": notice.study,
        "left": [each.name for each in channels if notice.kind in (*each.events, "test")],
        "tries": 0,
    }
