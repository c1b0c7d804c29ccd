"""Readers of .parquet, .csv and DuckDB files. Only the declared columns are ever touched."""

import glob
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from dpcausal.errors import TableError, redact_errors
from dpcausal.schema.schema import Schema
from dpcausal.vault.coercion import Family, check_columns, columns_used, dated_columns
from dpcausal.vault.engines.dialects import DUCKDB
from dpcausal.vault.engines.duckdb import families_of
from dpcausal.vault.readers.headers import (
    IN_UTF_8,
    SEPARATORS,
    check_names,
    has_bare_returns,
    header_mistakes,
    header_of,
    separator_of,
)
from dpcausal.vault.readers.unicode_files import broken_lines, is_unicode, unicode_files

OPENS = (
    "A vault opens a pandas, polars or pyarrow table, a polars lazy frame, a Spark frame, a DuckDB relation, an Ibis "
    'table, a .parquet or .csv file, a folder of .parquet files, a glob such as "visits/*.csv", "s3://bucket/visits/", '
    '"gs://bucket/visits/", "warehouse.duckdb#visits" or "postgresql://user@host/database#schema.table".'
)
"""What a vault can open, in words."""

_IN_DUCKDB_FILE = ".duckdb#"
_SEARCHED = "memory.main,system.main,system.pg_catalog,warehouse.main"
"""Where names are looked up for a DuckDB file: last in the file, whose views speak of its tables."""


def open_files(place: str, schema: Schema, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Open a table in files: a .parquet or .csv file, a folder or glob of them, or a table of a DuckDB file."""
    path, mark, name = place.partition(_IN_DUCKDB_FILE)
    if mark:
        return _stored(Path(f"{path}.duckdb"), name, connection)
    with _readable(place):
        return (_csv if _are_csv(place) else _parquet)(place, schema, connection)


def file_families(place: str, connection: duckdb.DuckDBPyConnection) -> Mapping[str, Family | None]:
    """Return the names of the columns, and what each one's type lets one do with it; None for a .csv file."""
    path, mark, name = place.partition(_IN_DUCKDB_FILE)
    if mark:
        return families_of(_stored(Path(f"{path}.duckdb"), name, connection))
    with _readable(place):
        if _are_csv(place):
            file = _found(place)[0]
            names = header_of(file, separator_of(file))
            check_names(file, names)
            return dict.fromkeys(names)
        read = "SELECT * FROM read_parquet($file, hive_partitioning=false)"
        return families_of(connection.sql(read, params={"file": glob.escape(_found(place)[0])}))


def separator_between(place: str) -> str:
    """Return what stands between the columns of a .csv file, in words; "commas" for any other table."""
    csv = _IN_DUCKDB_FILE not in place and "://" not in place and _are_csv(place)
    return SEPARATORS[separator_of(_found(place)[0])] if csv else SEPARATORS[","]


def mistakes_in_lines(place: str) -> list[str]:
    """Return what is wrong with the lines of .csv files, in words. Only for whoever may see the table."""
    if _IN_DUCKDB_FILE in place or "://" in place:
        return []
    with _readable(place):
        files = _found(place) if _are_csv(place) else []
        headers = (
            f"header: {words}" for file in files for words in header_mistakes(header_of(file, separator_of(file)))
        )
        broken = (
            ["lines: carriage returns without quotation marks end records"] if any(map(has_bare_returns, files)) else []
        )
        lines = sum(broken_lines(file) for file in files if not is_unicode(file))
        letters = (
            [f"lines: {lines:,} have letters that are not in UTF-8 and cannot be read. {IN_UTF_8}"] if lines else []
        )
        return [*dict.fromkeys(headers), *broken, *letters]


def _stored(path: Path, name: str, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Open a table or view of a DuckDB database, which nobody can change meanwhile.

    Whoever wrote the file is not trusted: its views and macros read nothing outside of it, and no macro of it takes the
    place of a function of DuckDB.
    """
    if not path.is_file():
        raise _no_file(str(path))
    parts = name.split(".", 1) if "." in name else ["main", name]
    try:
        file = str(path.absolute()).replace("'", "''")
        connection.execute(f"ATTACH '{file}' AS warehouse (TYPE duckdb, READ_ONLY)")
        connection.execute("SET enable_external_access = false")  # for good: DuckDB does not turn it on again
        connection.execute(f"SET search_path = '{_SEARCHED}'")
        return connection.sql(f"SELECT * FROM warehouse.{'.'.join(map(DUCKDB.column, parts))}")  # noqa: S608 (quoted)
    except duckdb.Error:
        raise TableError(
            problem=f"There is no table or view {name!r} in {path.name!r} that can be read",
            hint="check its name, write schema.table if it is not in main, and close what has the file open to write. "
            "A view that reads other files is not followed: name these files as the table.",
        ) from None


def _are_csv(place: str) -> bool:
    """Return whether files are .csv, and not .parquet, by what the path says and not by what is in them."""
    folder = Path(place).is_dir()
    if place.endswith("/") and not folder:
        raise _no_file(place)
    if not folder and not place.endswith((".parquet", ".csv", ".csv.gz")):
        hint = "write the table's name after it: warehouse.duckdb#visits." if place.endswith(".duckdb") else ""
        raise TableError(
            problem=f"A vault cannot open the file {Path(place).name!r}",
            hint=hint or "save it as .csv or as .parquet.",
        )
    return not folder and not place.endswith(".parquet")


def _readable(place: str) -> AbstractContextManager[None]:
    broken = TableError(
        problem=f"The table in {Path(place).name!r} cannot be read",
        hint="check that each file is whole and is what its name says.",
    )
    return redact_errors(duckdb.Error, pa.ArrowException, OSError, EOFError, zlib.error, instead=lambda _: broken)


def _found(place: str) -> list[str]:
    """Return the files that a path, folder or glob names; in folders none that is hidden or unfinished."""
    path = Path(place)
    if path.is_file():
        return [place]
    if path.is_dir():
        inside = (file for file in path.rglob("*.parquet") if file.is_file())
        files = [str(file) for file in inside if not any(part[0] in "._" for part in file.relative_to(path).parts)]
    else:
        files = [file for file in glob.glob(place, recursive=True) if Path(file).is_file()]  # noqa: PTH207 (from root)
    if not files:
        raise _no_file(place)
    return sorted(files)


def _no_file(place: str) -> TableError:
    return TableError(
        problem=f"There is no file at {place!r}",
        hint="check the path and working folder; a folder is for .parquet files, for others write folder/*.csv.",
    )


def _parquet(place: str, schema: Schema, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Open parquet files; names of folders are not read as columns."""
    files, used = _found(place), columns_used(schema)
    check_types(files, used, schema, pq.read_metadata)
    return parquet_relation(list(map(glob.escape, files)), used, connection)


def parquet_relation(
    files: Sequence[str], used: Sequence[str], connection: duckdb.DuckDBPyConnection
) -> duckdb.DuckDBPyRelation:
    """Return some columns of parquet files, which are given as DuckDB names them."""
    names = ", ".join(map(DUCKDB.column, used))
    # Without this DuckDB takes it from the files' statistics that a column has no NaN, and one cell decides on others.
    read = "read_parquet($files, can_have_nan=true, hive_partitioning=false)"
    return connection.sql(f"SELECT {names} FROM {read}", params={"files": list(files)})  # noqa: S608


def check_types(
    files: Sequence[str], used: Sequence[str], schema: Schema, metadata: Callable[[str], pq.FileMetaData]
) -> None:
    """Raise unless each column has one type in all files, since DuckDB casts to the first one's and may fail at that.

    And if the type is of times in milliseconds, at which DuckDB fails if one of them is far off.
    """
    keys = {*((schema.unit.name, schema.unit.by) if schema.unit else ()), *dated_columns(schema)}
    first: dict[str, str] = {}
    for file in files:
        described = metadata(file).schema
        check_columns(used, described.to_arrow_schema().names)
        leaves = [described.column(place) for place in range(len(described))]
        types = {
            leaf.path: f"{leaf.physical_type} {leaf.logical_type} {leaf.length} {leaf.max_repetition_level}"
            for leaf in leaves
        }
        for name in used:
            kind = types.get(name, "nested")
            if kind != first.setdefault(name, kind):
                raise TableError(
                    problem=f"The column {name!r} has the type {first[name]} and, in {Path(file).name!r}, the "
                    f"type {kind}",
                    hint="write the files anew with one type.",
                )
            if name in keys and "timeUnit=milliseconds" in kind:
                raise TableError(
                    problem=f"The column {name!r} must hold times in microseconds, dates, numbers or text, and has the "
                    f"type {kind}",
                    hint="write the file with microseconds, for instance with coerce_timestamps='us' in pyarrow.",
                )


def _csv(place: str, schema: Schema, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Open csv files as text throughout: nothing is guessed from their rows, and no row can make reading them fail.

    Columns that are not declared may have any names, none, or the same: they only keep their place.
    """
    files, used = _found(place), columns_used(schema)
    separator = separator_of(files[0], used)
    headers = [header_of(file, separator) for file in files]
    for each in headers:
        check_columns(used, each)
    header = headers[0]
    if any(each != header for each in headers):
        raise TableError(
            problem="Some files have other columns than the first one, or another order of them",
            hint="write the files anew, or as .parquet, where only declared columns must agree.",
        )
    ((spill,),) = connection.execute("SELECT current_setting('temp_directory')").fetchall()
    files = unicode_files(files, spill if Path(spill).name.startswith("dpcausal-") else "", connection)
    other = f"not {max(used, key=len)}"  # longer than any that is declared
    names = [name if name in used else f"{other} {place}" for place, name in enumerate(header)]
    return connection.read_csv(
        list(map(glob.escape, files)),  # type: ignore[arg-type]  # a list is fine; DuckDB's types do not say so
        header=True, columns=dict.fromkeys(names, "VARCHAR"), auto_detect=False, sep=separator,
        quotechar='"', escapechar='"', strict_mode=False, null_padding=True, ignore_errors=True, parallel=False,
    )  # fmt: skip
