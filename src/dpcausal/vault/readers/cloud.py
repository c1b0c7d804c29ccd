"""Parquet files in an object store, s3:// or gs://, read where they are by DuckDB through Arrow's file systems."""

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from dpcausal.errors import TableError, redact_errors
from dpcausal.vault.coercion import Family, columns_used
from dpcausal.vault.engines.duckdb import families_of
from dpcausal.vault.readers.files import check_types, parquet_relation

if TYPE_CHECKING:
    from dpcausal.schema.schema import Schema

SCHEMES = ("s3://", "gs://")


def open_cloud(place: str, schema: "Schema", connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Open a table in an object store: a .parquet file, a folder or a glob of them.

    Credentials, region and endpoint are those of the environment, as Arrow finds them; none are in the address.
    """
    with _readable():
        store, files = _found(place)
        used = columns_used(schema)
        check_types(files, used, schema, lambda file: pq.read_metadata(store.open_input_file(file)))
        return parquet_relation(_registered(store, files, connection), used, connection)


def cloud_families(place: str, connection: duckdb.DuckDBPyConnection) -> dict[str, Family]:
    """Return the columns of the first file, each with what its type lets one do with it. No value is read."""
    with _readable():
        store, files = _found(place)
        named = _registered(store, files[:1], connection)
        return families_of(connection.sql("SELECT * FROM read_parquet($files)", params={"files": named}))


def _registered(store: fs.FileSystem, files: Sequence[str], connection: duckdb.DuckDBPyConnection) -> list[str]:
    """Make a store known to DuckDB, and return its files as DuckDB names them."""
    try:
        from fsspec.implementations.arrow import ArrowFSWrapper  # noqa: PLC0415 (an extra)
    except ModuleNotFoundError as error:
        raise TableError(
            problem=f"The file system for object stores is not installed: there is no module {error.name!r}",
            hint='pip install "dpcausal[cloud]".',
        ) from None
    wrapped = ArrowFSWrapper(store)
    connection.register_filesystem(wrapped)
    return [f"{store.type_name}://{file}" for file in files]


def _found(place: str) -> tuple[fs.FileSystem, list[str]]:
    """Return the store and the files that an address names; in folders none that is hidden or unfinished."""
    scheme, _, path = place.partition("://")
    if not re.fullmatch(r"[\w.-]+/[^?@\[\]]+", path):
        raise TableError(
            problem=f'An address in this object store is such as "{scheme}://bucket/visits/" or '
            f'"{scheme}://bucket/visits/2026-*.parquet"; what was given is not shown because it may hold a '
            "password",
            hint="leave credentials and options to the environment, such as AWS_PROFILE or AWS_REGION.",
        )
    store, _ = fs.FileSystem.from_uri(f"{scheme}://{path.partition('/')[0]}")
    before, star, _ = path.partition("*")
    if path.endswith(".parquet") and not star:
        return store, [path]
    base = before.rpartition("/")[0]
    listed = [each.path for each in store.get_file_info(fs.FileSelector(base, recursive=True)) if each.is_file]
    files = [file for file in listed if file.endswith(".parquet") and _is_meant(file[len(base) :], path[len(base) :])]
    if not files or (star and not path.endswith(".parquet")):
        raise TableError(
            problem=f"There is no .parquet file at {PurePosixPath(path).name!r} of that bucket",
            hint="check the address; other files must be downloaded first.",
        )
    if any(sign in file for file in files for sign in "*?[]"):
        raise TableError(
            problem="Names of files hold *, ? or brackets, which would be read as a pattern, and files twice",
            hint="rename those files, or name the others by a glob.",
        )
    return store, sorted(files)


def _is_meant(file: str, wanted: str) -> bool:
    """Return whether a file is in the folder that is wanted, or fits the glob."""
    if "*" in wanted:
        pattern = re.escape(wanted).replace(r"\*\*", ".*").replace(r"\*", "[^/]*")
        return re.fullmatch(pattern, file) is not None
    return not any(part[:1] in ("_", ".") for part in PurePosixPath(file).parts)


def _readable() -> AbstractContextManager[None]:
    failed = TableError(
        problem="The object store could not be read, and its message is withheld because it may quote the table",
        hint="check the address, credentials, region and endpoint with the store's own program.",
    )
    return redact_errors(duckdb.Error, pa.ArrowException, OSError, instead=lambda _: failed)
