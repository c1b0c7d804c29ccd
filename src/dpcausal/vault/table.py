"""Anything that holds a table, opened for an engine where it lies. Only the declared columns are ever touched."""

import glob
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import duckdb
import narwhals as nw
import pyarrow as pa
import pyarrow.parquet as pq

from dpcausal.errors import TableError, redact_errors
from dpcausal.schema import Schema
from dpcausal.vault.coercion import Family, check_columns, columns_used, dated_columns
from dpcausal.vault.engines import Engine
from dpcausal.vault.engines.dialects import DUCKDB
from dpcausal.vault.engines.duckdb import DuckDBEngine, connect, families_of
from dpcausal.vault.engines.progress import ProgressEngine
from dpcausal.vault.engines.resources import Resources
from dpcausal.vault.engines.spark import SparkEngine, is_spark_frame
from dpcausal.vault.readers.frames import arrow_table
from dpcausal.vault.readers.headers import check_names, check_separator, header_mistakes, header_of
from dpcausal.vault.readers.postgres import PostgresTable, families_at

_TABLES = (
    "a pandas, polars or pyarrow table, a Spark frame, a DuckDB relation, a .parquet or .csv file, a folder of "
    '.parquet files, a glob such as "visits/*.csv", "warehouse.duckdb#visits" or '
    '"postgresql://user@host/database#schema.table"'
)
_POSTGRES = ("postgresql://", "postgres://")
_IN_DUCKDB = "set them in the relation's own connection: SET memory_limit = '1GB', SET threads, SET temp_directory."
_IN_SPARK = "set them in Spark's own configuration: spark.executor.memory, spark.executor.cores, spark.local.dir."


def open_table(table: object, schema: Schema, resources: Resources | None = None) -> Engine:
    """An engine over a table, whatever holds it."""
    allowed = resources or Resources()
    if is_spark_frame(table):
        _check_not_asked_for(allowed, _IN_SPARK)
        spark = SparkEngine(table, schema)
        return ProgressEngine(spark) if allowed.progress else spark
    if isinstance(table, duckdb.DuckDBPyRelation):
        _check_not_asked_for(allowed, _IN_DUCKDB)
        engine = DuckDBEngine(table, schema)
    else:
        spill = allowed.folder if resources else None
        engine = _opened(table, schema, connect(allowed.threads, allowed.memory, spill))
    return ProgressEngine(engine, engine.share) if allowed.progress else engine


def _check_not_asked_for(resources: Resources, where: str) -> None:
    if resources.are_asked_for:
        raise TableError(
            expected="no memory, threads or spill for a table that brings its own engine",
            got=repr(resources),
            hint=where,
        )


def _opened(table: object, schema: Schema, connection: duckdb.DuckDBPyConnection) -> DuckDBEngine:
    if not isinstance(table, str | Path):
        return DuckDBEngine(_frame(table, schema, connection), schema, connection=connection)
    place = str(table)
    if place.startswith(_POSTGRES):
        return _streamed(PostgresTable(place, schema), schema, connection)
    _check_place(place)
    database, mark, name = place.partition(".duckdb#")
    relation = _stored(Path(f"{database}.duckdb"), name, connection) if mark else _files(place, schema, connection)
    return DuckDBEngine(relation, schema, connection=connection)


def _check_place(place: str) -> None:
    if not place or re.match(r"[A-Za-z][\w+.-]+:|.*password", place, re.IGNORECASE | re.DOTALL):
        raise TableError(
            expected=_TABLES,
            got="an address of another kind, which is not shown because it may hold a password" if place else "nothing",
            hint="write a string with postgresql:// for a table in PostgreSQL, and download anything else.",
        )


def column_families(place: str) -> Mapping[str, Family | None]:
    """The names of the columns of a table, and what each one's type lets one do with it. No value is read.

    A .csv file has no types: there it is None, and a first line that looks like values is refused. Of many files, the
    first one's columns count.

    Args:
        place: Where the table lies, as for a vault.
    """
    if place.startswith(_POSTGRES):
        return families_at(place)
    _check_place(place)
    connection = connect()
    database, mark, name = place.partition(".duckdb#")
    if mark:
        return families_of(_stored(Path(f"{database}.duckdb"), name, connection))
    with _readable(place):
        if _are_csv(place):
            file = _found(place)[0]
            names = header_of(file)
            check_names(file, names)
            return dict.fromkeys(names)
        read = "SELECT * FROM read_parquet($file, hive_partitioning=false)"
        return families_of(connection.sql(read, params={"file": glob.escape(_found(place)[0])}))


def mistakes_in_headers(place: str) -> list[str]:
    """Return what is wrong with the first lines of .csv files, in words. Only for whoever may see the table."""
    if place.startswith(_POSTGRES) or ".duckdb#" in place:
        return []
    with _readable(place):
        files = _found(place) if _are_csv(place) else []
        return list(dict.fromkeys(words for file in files for words in header_mistakes(header_of(file))))


def _frame(table: object, schema: Schema, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    if isinstance(table, dict):
        raise TableError(
            expected=_TABLES,
            got="a dict",
            hint="make a table of it: pandas.DataFrame(columns), or pyarrow.table(columns).",
        )
    try:
        columns = arrow_table(nw.from_native(table, eager_only=True), schema)
    except (TypeError, nw.exceptions.DuplicateError):
        raise TableError(
            expected=f"{_TABLES}; each column once",
            got=type(table).__name__,
            hint="convert it to one of these; collect a lazy frame first, and rename columns that stand twice.",
        ) from None
    try:
        return connection.from_arrow(columns)
    except duckdb.Error:
        raise TableError(
            expected="columns of numbers or text",
            got=f"the types {', '.join(str(column.type) for column in columns.itercolumns())}",
            hint="convert the columns; DuckDB cannot read one of these types.",
        ) from None


def _streamed(table: PostgresTable, schema: Schema, connection: duckdb.DuckDBPyConnection) -> DuckDBEngine:
    @contextmanager
    def passes() -> Iterator[duckdb.DuckDBPyRelation]:
        with table.read() as stream:
            try:
                yield connection.from_arrow(stream)
            finally:  # any statement ends the last one, which may still be reading from the stream
                connection.execute("SELECT 1").fetchall()

    return DuckDBEngine(connection.from_arrow(table.columns), schema, connection=connection, passes=passes)


def _stored(path: Path, name: str, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """A table of a DuckDB database, which nobody can change meanwhile, or a view, as fixed as what it reads."""
    if not path.is_file():
        raise _no_file(str(path))
    parts = name.split(".", 1) if "." in name else ["main", name]
    try:
        file = str(path.absolute()).replace("'", "''")
        connection.execute(f"ATTACH '{file}' AS warehouse (READ_ONLY)")
        connection.execute("USE warehouse")  # where the tables are that its views speak of
        return connection.sql(f"SELECT * FROM warehouse.{'.'.join(map(DUCKDB.column, parts))}")  # noqa: S608 (quoted)
    except duckdb.Error:
        raise TableError(
            expected=f"a table or view {name!r} that can be read in {path.name!r}",
            got="none",
            hint="check its name, write schema.table if it is not in main, and close what has the file open to write.",
        ) from None


def _files(place: str, schema: Schema, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    with _readable(place):
        return (_csv if _are_csv(place) else _parquet)(place, schema, connection)


def _are_csv(place: str) -> bool:
    """Whether one file or many are .csv or .parquet, by what the path says: nothing is decided by what is in them."""
    folder = Path(place).is_dir()
    if place.endswith("/") and not folder:
        raise _no_file(place)
    if not folder and not place.endswith((".parquet", ".csv", ".csv.gz")):
        hint = "write the table's name after it: warehouse.duckdb#visits." if place.endswith(".duckdb") else ""
        raise TableError(
            expected=_TABLES,
            got=f"the file {Path(place).name!r}",
            hint=hint or "save it as .csv with commas, or as .parquet.",
        )
    return not folder and not place.endswith(".parquet")


def _readable(place: str) -> AbstractContextManager[None]:
    broken = TableError(
        expected=f"a readable table in {Path(place).name!r}",
        got="a file that cannot be read",
        hint="check that each file is whole and is what its name says.",
    )
    return redact_errors(duckdb.Error, pa.ArrowException, OSError, EOFError, zlib.error, instead=lambda _: broken)


def _found(place: str) -> list[str]:
    """The files that a path, a folder or a glob names; in folders none that is hidden or, as in Spark's, unfinished."""
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
        expected="a file, or a folder or glob of some",
        got=f"no file at {place!r}",
        hint="check the path and working folder; a folder is for .parquet files, for others write folder/*.csv.",
    )


def _parquet(place: str, schema: Schema, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Parquet files; names of folders are not read as columns."""
    files, used = _found(place), columns_used(schema)
    _check_types(files, used, schema)
    names = ", ".join(map(DUCKDB.column, used))
    # Without this DuckDB takes it from the files' statistics that a column has no NaN, and one cell decides on others.
    read = "read_parquet($files, can_have_nan=true, hive_partitioning=false)"
    return connection.sql(f"SELECT {names} FROM {read}", params={"files": list(map(glob.escape, files))})  # noqa: S608


def _check_types(files: Sequence[str], used: Sequence[str], schema: Schema) -> None:
    """Raise unless each column has one type in all files, since DuckDB casts to the first one's and may fail at that.

    And if the type is of times in milliseconds, at which DuckDB fails if one of them lies far off.
    """
    keys = {*((schema.unit.name, schema.unit.by) if schema.unit else ()), *dated_columns(schema)}
    first: dict[str, str] = {}
    for file in files:
        described = pq.read_metadata(file).schema
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
                    expected=f"one type of column {name!r} in all files",
                    got=f"{first[name]} and, in {Path(file).name!r}, {kind}",
                    hint="write the files anew with one type.",
                )
            if name in keys and "timeUnit=milliseconds" in kind:
                raise TableError(
                    expected=f"a column {name!r} with times in microseconds, or dates, numbers or text",
                    got=f"the type {kind}",
                    hint="write the file with microseconds, for instance with coerce_timestamps='us' in pyarrow.",
                )


def _csv(place: str, schema: Schema, connection: duckdb.DuckDBPyConnection) -> duckdb.DuckDBPyRelation:
    """Csv files as text throughout: nothing is guessed from their rows, and no row can make reading them fail.

    Columns that are not declared may have any names, none, or the same: they only keep their place.
    """
    files, used = _found(place), columns_used(schema)
    headers = [header_of(file) for file in files]
    for file, each in zip(files, headers, strict=True):
        # First: of files without a header nothing more is told, whatever their first lines are.
        check_separator(file, used)
        check_columns(used, each)
    header = headers[0]
    if any(each != header for each in headers):
        raise TableError(
            expected="the same columns in all files, in one order",
            got="others in some",
            hint="write the files anew, or as .parquet, where only declared columns must agree.",
        )
    other = f"not {max(used, key=len)}"  # longer than any that is declared
    names = [name if name in used else f"{other} {place}" for place, name in enumerate(header)]
    return connection.read_csv(
        list(map(glob.escape, files)),  # type: ignore[arg-type]  # a list is fine; DuckDB's types do not say so
        header=True, columns=dict.fromkeys(names, "VARCHAR"), auto_detect=False, sep=",", quotechar='"', escapechar='"',
        strict_mode=False, null_padding=True, ignore_errors=True, parallel=False,
    )  # fmt: skip
