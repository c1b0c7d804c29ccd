"""Fresh PostgreSQL databases on the server that DPCAUSAL_POSTGRES names."""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import create_engine, make_url, text

VARIABLE = "DPCAUSAL_POSTGRES"


@contextmanager
def fresh_database() -> Iterator[str]:
    """The address of an empty database, dropped afterwards."""
    server = os.environ[VARIABLE]
    name = f"dpcausal_{uuid.uuid4().hex}"
    engine = create_engine(server, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
    try:
        yield make_url(server).set(database=name).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
        engine.dispose()
