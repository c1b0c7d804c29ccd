"""The mailbox's database: callers, invitations, requests, and deliveries with their messages.

Requests with their deliveries and messages belong to whoever sent them, invitations and sites to whoever invited them.
No requester sees or changes what is another's.

Each method is one transaction, so that any number of processes may be killed at any point. Only the database has a
state; the server has none.
"""

import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    and_,
    case,
    create_engine,
    delete,
    event,
    exists,
    func,
    insert,
    literal,
    make_url,
    or_,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import insert as postgresql_insert
from sqlalchemy.dialects.sqlite import insert as sqlite_insert
from sqlalchemy.exc import ArgumentError, SQLAlchemyError
from sqlalchemy.pool import NullPool

from dpcausal.errors import TransportError, redact_errors
from dpcausal.federation.protocol.transport import with_enclosed
from dpcausal.federation.transports.mailbox.calls import LONGEST_REPLY, WINDOW, Role

Admission = Literal["admitted", "clock", "replayed", "busy"]

_RATES: dict[Role, tuple[float, int]] = {"site": (2.0, 20), "requester": (20.0, 200)}
"""For each role, the calls a second that are admitted in the long run, and the calls that are admitted at once."""

_MOST_REQUESTS, _MOST_MESSAGES = 10, 200
_TABLES = MetaData()
_NUMBER = BigInteger().with_variant(Integer, "sqlite")
_CALLERS = Table(
    "mailbox_callers",
    _TABLES,
    Column("role", String(10), primary_key=True),
    Column("name", String(64), primary_key=True),
    Column("key", String(64), nullable=False),
    Column("binding", String(64), nullable=False, default=""),
    Column("inviter", String(64), nullable=False, default=""),
    Column("revoked", Boolean, nullable=False, default=False),
    Column("stamp", BigInteger, nullable=False, default=0),
    Column("busy_until", Float, nullable=False, default=0.0),
    Column("seen", Float, nullable=False, default=0.0),
)
_INVITATIONS = Table(
    "mailbox_invitations",
    _TABLES,
    Column("site", String(64), primary_key=True),
    Column("inviter", String(64), nullable=False),
    Column("pass_digest", String(64), nullable=False),
    Column("expires", BigInteger, nullable=False),
    Column("used_by", String(64), nullable=False, default=""),
)
_ROTATIONS = Table(
    "mailbox_rotations",
    _TABLES,
    Column("place", _NUMBER, primary_key=True, autoincrement=True),
    Column("site", String(64), nullable=False),
    Column("text", Text, nullable=False),
)
_REQUESTS = Table(
    "mailbox_requests",
    _TABLES,
    Column("id", String(64), primary_key=True),
    Column("requester", String(64), primary_key=True),
    Column("text", Text, nullable=False),
)
_DELIVERIES = Table(
    "mailbox_deliveries",
    _TABLES,
    Column("place", _NUMBER, primary_key=True, autoincrement=True),
    Column("request", String(64), nullable=False, index=True),
    Column("requester", String(64), nullable=False),
    Column("site", String(64), nullable=False),
    Column("message", Text),
    Column("collected", Boolean, nullable=False, default=False),
)
_ENCLOSED = Table(
    "mailbox_enclosed",
    _TABLES,
    Column("request", String(64), primary_key=True),
    Column("requester", String(64), primary_key=True),
    Column("site", String(64), primary_key=True),
    Column("text", Text, nullable=False),
)
"""What a site gets with a request for itself alone, until it has answered."""
_OPEN = _DELIVERIES.c.message.is_(None)
Index(
    "mailbox_open_deliveries",
    _DELIVERIES.c.site,
    _DELIVERIES.c.request,
    _DELIVERIES.c.requester,
    unique=True,
    postgresql_where=_OPEN,
    sqlite_where=_OPEN,
)


@dataclass(frozen=True)
class SiteStatus:
    """What the mailbox knows about a site.

    Attributes:
        binding: The proof of its key, for the coordinator.
        seen: The time of its last call, in seconds since 1970; 0 if there was none.
        waiting: The number of the requester's requests that it has not answered.
    """

    site: str
    key: str
    binding: str
    revoked: bool
    seen: float
    waiting: int


class MailboxStore:
    """The database of a mailbox."""

    def __init__(self, address: str, connections: int) -> None:
        self._engine = _engine(address, connections)
        weakref.finalize(self, self._engine.dispose)

    def create(self, requesters: Mapping[str, str]) -> None:
        """Create the tables unless they exist, and set the keys of those who may send requests.

        The first of them also owns the sites whose inviter is not among them: one that was removed, or that an earlier
        version of dpcausal did not record.
        """
        with self._transaction() as connection:
            if connection.dialect.name == "postgresql":
                connection.exec_driver_sql("SELECT pg_advisory_xact_lock(1835100524)")  # two servers start at once
            _TABLES.create_all(connection)
            everyone = update(_CALLERS).where(_CALLERS.c.role == "requester")
            connection.execute(everyone.values(revoked=True))
            for name, key in requesters.items():
                self._set_caller(connection, "requester", name, {"key": key})
            for table, sites in ((_CALLERS, _CALLERS.c.role == "site"), (_INVITATIONS, literal(value=True))):
                abandoned = update(table).where(sites, table.c.inviter.not_in(requesters))
                connection.execute(abandoned.values(inviter=next(iter(requesters), "")))

    def key_of(self, role: Role, name: str) -> str | None:
        """Return the public key of a caller; None if there is none, or if it is revoked."""
        wanted = select(_CALLERS.c.key).where(_is_caller(role, name), _CALLERS.c.revoked.is_(False))
        with self._transaction() as connection:
            return connection.execute(wanted).scalar_one_or_none()

    def admit(self, role: Role, name: str, stamp: int) -> tuple[Admission, float]:
        """Return whether a signed call counts, and the seconds to wait if there were too many.

        A time stamp must be near the server's time and later than that of the caller's last call. Calls are counted in
        the database, so that the limit holds over all processes.
        """
        now = time.time()
        if abs(stamp / 1e6 - now) > WINDOW:
            return "clock", 0.0
        rate, burst = _RATES[role]
        later = case((_CALLERS.c.busy_until > now, _CALLERS.c.busy_until), else_=now)
        counted = (
            update(_CALLERS)
            .where(_is_caller(role, name), _CALLERS.c.stamp < stamp, _CALLERS.c.busy_until <= now + burst / rate)
            .values(stamp=stamp, busy_until=later + 1 / rate, seen=now)
        )
        with self._transaction(durable=False) as connection:
            if connection.execute(counted).rowcount:
                return "admitted", 0.0
            state = connection.execute(
                select(_CALLERS.c.stamp, _CALLERS.c.busy_until).where(_is_caller(role, name))
            ).one()
        wait = state.busy_until - now - burst / rate
        return ("busy", wait) if wait > 0 else ("replayed", 0.0)

    def invite(self, inviter: str, site: str, pass_digest: str, expires: int) -> bool:
        """Store an invitation in place of the inviter's earlier one, and return whether the name is not another's.

        The name of a site is another's if that requester's site joined, also if it was revoked since, or if that
        requester's invitation is still valid.
        """
        values = {"inviter": inviter, "pass_digest": pass_digest, "expires": expires, "used_by": ""}
        joined = exists().where(_is_caller("site", site), _CALLERS.c.inviter != inviter)
        with self._transaction() as connection:
            command = _insert(connection)(_INVITATIONS).values(site=site, **values)
            free = or_(_INVITATIONS.c.inviter == inviter, _INVITATIONS.c.expires <= time.time())
            stored = command.on_conflict_do_update(index_elements=["site"], set_=values, where=free)
            if connection.execute(stored.returning(_INVITATIONS.c.site)).first() is None:
                return False
            taken = bool(connection.execute(select(joined)).scalar_one())  # after a join that the command waited for
            if taken:
                connection.rollback()
            return not taken

    def join(self, site: str, pass_digest: str, key: str, binding: str) -> bool:
        """Store the key of an invited site, and return whether the invitation was valid.

        An invitation is used once. The same key may come again, where a reply was lost.
        """
        invitation = and_(_INVITATIONS.c.site == site, _INVITATIONS.c.pass_digest == pass_digest)
        fresh = and_(_INVITATIONS.c.used_by == "", _INVITATIONS.c.expires > time.time())
        with self._transaction() as connection:
            if connection.execute(update(_INVITATIONS).where(invitation, fresh).values(used_by=key)).rowcount:
                inviter = connection.execute(select(_INVITATIONS.c.inviter).where(invitation)).scalar_one()
                self._set_caller(connection, "site", site, {"key": key, "binding": binding, "inviter": inviter})
                return True
            used_by = connection.execute(select(_INVITATIONS.c.used_by).where(invitation)).scalar_one_or_none()
            return used_by == key

    def rotate(self, site: str, old: str, new: str, text: str) -> bool:
        """Replace the key of a site, store the record for the requester, and return whether it had the old key."""
        current = and_(_is_caller("site", site), _CALLERS.c.key == old, _CALLERS.c.revoked.is_(False))
        with self._transaction() as connection:
            if not connection.execute(update(_CALLERS).where(current).values(key=new)).rowcount:
                return False
            connection.execute(insert(_ROTATIONS).values(site=site, text=text))
            return True

    def rotations(self, requester: str) -> list[tuple[str, str]]:
        """Return the records of rotated keys of a requester's sites, with their sites, the oldest first."""
        own = and_(_CALLERS.c.role == "site", _CALLERS.c.name == _ROTATIONS.c.site, _CALLERS.c.inviter == requester)
        wanted = select(_ROTATIONS.c.site, _ROTATIONS.c.text).join(_CALLERS, own).order_by(_ROTATIONS.c.place)
        with self._transaction() as connection:
            return [(site, text) for site, text in connection.execute(wanted)]

    def revoke(self, inviter: str, site: str) -> bool:
        """Refuse a site of the inviter from now on, and return whether there was one."""
        own = and_(_is_caller("site", site), _CALLERS.c.inviter == inviter)
        with self._transaction() as connection:
            return bool(connection.execute(update(_CALLERS).where(own).values(revoked=True)).rowcount)

    def post_request(
        self, request: str, requester: str, text: str, sites: Sequence[str], enclosed: Mapping[str, str]
    ) -> None:
        """Store a request and open a delivery for each site, unless the site has an open one.

        The same request may come again with a later deadline: sites that have not answered receive the last text.

        Args:
            enclosed: What sites get with the request for themselves alone.
        """
        with self._transaction() as connection:
            new = _insert(connection)
            stored = {"id": request, "requester": requester, "text": text}
            last = new(_REQUESTS).values(stored)
            connection.execute(last.on_conflict_do_update(index_elements=["id", "requester"], set_={"text": text}))
            if sites:
                delivery = {"request": request, "requester": requester, "collected": False}
                lines = [delivery | {"site": site} for site in sites]
                connection.execute(new(_DELIVERIES).values(lines).on_conflict_do_nothing())
            if enclosed:
                own = {"request": request, "requester": requester}
                texts = [own | {"site": site, "text": each} for site, each in enclosed.items()]
                connection.execute(new(_ENCLOSED).values(texts).on_conflict_do_nothing())

    def withdraw(self, requester: str, requests: Sequence[str]) -> int:
        """Close the open deliveries of a requester's requests, and return how many there were."""
        own = and_(_DELIVERIES.c.requester == requester, _DELIVERIES.c.request.in_(requests), _OPEN)
        enclosed = and_(_ENCLOSED.c.requester == requester, _ENCLOSED.c.request.in_(requests))
        with self._transaction() as connection:
            connection.execute(delete(_ENCLOSED).where(enclosed))
            return int(connection.execute(delete(_DELIVERIES).where(own)).rowcount)

    def requests_for(self, site: str, after: int) -> list[tuple[int, str]]:
        """Return the places and texts of a site's first open deliveries beyond a place, as many as a reply holds."""
        enclosed = func.coalesce(_ENCLOSED.c.text, "")
        size = func.length(_REQUESTS.c.text) + func.length(enclosed)
        open_ones = (
            select(_DELIVERIES.c.place, _REQUESTS.c.text, enclosed)
            .join(
                _REQUESTS,
                and_(_REQUESTS.c.id == _DELIVERIES.c.request, _REQUESTS.c.requester == _DELIVERIES.c.requester),
            )
            .outerjoin(
                _ENCLOSED,
                and_(*(_ENCLOSED.c[name] == _DELIVERIES.c[name] for name in ("request", "requester", "site"))),
            )
            .where(_DELIVERIES.c.site == site, _OPEN, _DELIVERIES.c.place > after)
            .order_by(_DELIVERIES.c.place)
            .limit(_MOST_REQUESTS)
        )
        listed = open_ones.with_only_columns(_DELIVERIES.c.place, size)
        with self._transaction() as connection:
            within = _DELIVERIES.c.place.in_(_places_within(connection.execute(listed)))
            found = connection.execute(open_ones.where(within))
            return [(place, with_enclosed(*texts)) for place, *texts in found]

    def post_message(self, site: str, place: int, request: str, text: str) -> bool:
        """Store the message of a site for one of its deliveries, and return whether it has such a delivery.

        The first message counts; the same one may come again. A message that could not name its request has none.
        """
        same = _DELIVERIES.c.request == request if request else literal(value=True)
        delivery = and_(_DELIVERIES.c.place == place, _DELIVERIES.c.site == site, same)
        with self._transaction() as connection:
            if connection.execute(update(_DELIVERIES).where(delivery, _OPEN).values(message=text)).rowcount:
                answered = select(_DELIVERIES.c.request).where(delivery).scalar_subquery()
                asked = select(_DELIVERIES.c.requester).where(delivery).scalar_subquery()
                own = and_(_ENCLOSED.c.site == site, _ENCLOSED.c.request == answered, _ENCLOSED.c.requester == asked)
                connection.execute(delete(_ENCLOSED).where(own))
                return True
            return bool(connection.execute(select(exists().where(delivery))).scalar_one())

    def messages(self, requester: str, request: str) -> list[tuple[int, str, str]]:
        """Return places, sites and texts of the first messages that the requester has not collected."""
        own = and_(_DELIVERIES.c.request == request, _DELIVERIES.c.requester == requester)
        waiting = and_(own, ~_OPEN, _DELIVERIES.c.collected.is_(False))
        size = func.length(_DELIVERIES.c.message)
        with self._transaction() as connection:
            listed = select(_DELIVERIES.c.place, size).where(waiting).order_by(_DELIVERIES.c.place)
            places = _places_within(connection.execute(listed.limit(_MOST_MESSAGES)))
            wanted = select(_DELIVERIES.c.place, _DELIVERIES.c.site, _DELIVERIES.c.message)
            return [tuple(each) for each in connection.execute(wanted.where(_DELIVERIES.c.place.in_(places)))]

    def collect(self, requester: str, places: Sequence[int]) -> None:
        """Forget the texts of messages that their requester has stored."""
        own = and_(_DELIVERIES.c.place.in_(places), _DELIVERIES.c.requester == requester)
        chosen = update(_DELIVERIES).where(own, ~_OPEN)
        with self._transaction() as connection:
            connection.execute(chosen.values(collected=True, message=""))

    def sites(self, requester: str) -> list[SiteStatus]:
        """Return what is known about each site that the requester invited and that joined."""
        waiting = (
            select(_DELIVERIES.c.site, func.count().label("number"))
            .where(_OPEN, _DELIVERIES.c.requester == requester)
            .group_by(_DELIVERIES.c.site)
            .subquery()
        )
        wanted = (
            select(
                *(_CALLERS.c[name] for name in ("name", "key", "binding", "revoked", "seen")),
                func.coalesce(waiting.c.number, literal(0)),
            )
            .outerjoin(waiting, waiting.c.site == _CALLERS.c.name)
            .where(_CALLERS.c.role == "site", _CALLERS.c.inviter == requester)
            .order_by(_CALLERS.c.name)
        )
        with self._transaction() as connection:
            return [SiteStatus(*tuple(each)) for each in connection.execute(wanted)]

    @staticmethod
    def _set_caller(connection: Connection, role: Role, name: str, given: Mapping[str, str]) -> None:
        values = {**given, "revoked": False}
        if not connection.execute(update(_CALLERS).where(_is_caller(role, name)).values(values)).rowcount:
            connection.execute(insert(_CALLERS).values(role=role, name=name, **values))

    @contextmanager
    def _transaction(self, *, durable: bool = True) -> Iterator[Connection]:
        """Open a transaction. One that is not durable may be lost with the database server, not with this process."""
        with redact_errors(SQLAlchemyError, instead=_unusable), self._engine.begin() as connection:
            if not durable and connection.dialect.name == "postgresql":
                connection.exec_driver_sql("SET LOCAL synchronous_commit TO off")
            yield connection


def _places_within(lengths: Iterable[Any]) -> list[int]:
    """Return the first places whose texts, of these lengths, are together no longer than a reply; at least one."""
    places: list[int] = []
    total = 0
    for place, length in lengths:
        total += 2 * length + 200  # quotation marks are escaped in the reply
        if places and total > LONGEST_REPLY:
            break
        places.append(place)
    return places


def _is_caller(role: Role, name: str) -> Any:  # noqa: ANN401 (a condition of SQLAlchemy)
    return and_(_CALLERS.c.role == role, _CALLERS.c.name == name)


def _insert(connection: Connection) -> Any:  # noqa: ANN401 (the two have no common type)
    return postgresql_insert if connection.dialect.name == "postgresql" else sqlite_insert


def _engine(address: str, connections: int) -> Engine:
    with redact_errors(ArgumentError, ModuleNotFoundError, instead=_unusable):
        if make_url(address).get_backend_name() == "sqlite":
            return _sqlite(address)
        return create_engine(
            address,
            pool_size=connections,
            max_overflow=0,
            pool_timeout=10,
            pool_pre_ping=True,
            isolation_level="READ COMMITTED",
            hide_parameters=True,
        )


def _sqlite(address: str) -> Engine:
    engine = create_engine(address, poolclass=NullPool, connect_args={"timeout": 20}, hide_parameters=True)

    @event.listens_for(engine, "connect")
    def set_durable(connection: Any, _: object) -> None:  # noqa: ANN401 (a connection of the driver)
        connection.isolation_level = None  # the driver must not begin transactions of its own
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")

    @event.listens_for(engine, "begin")
    def begin_immediate(connection: Connection) -> None:
        connection.exec_driver_sql("BEGIN IMMEDIATE")

    return engine


def _unusable(error: Exception) -> TransportError:
    return TransportError(
        problem=f"The database of the mailbox cannot be used: {type(error).__name__} "
        f"({type(error.__cause__).__name__})",
        hint="check its address in mailbox.toml, and that it is running; for PostgreSQL install "
        '"dpcausal[federation,postgres]".',
    )
