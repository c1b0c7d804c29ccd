"""ClickHouse on loopback: chdb, its engine as a library, behind the HTTP interface that Ibis speaks.

`python -m tests.support.clickhouse FOLDER` serves a table for each parquet file of a folder, and prints its port.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit


@contextmanager
def clickhouse(folder: Path) -> Iterator[int]:
    """Serve the parquet files of a folder, and yield the port."""
    command = [sys.executable, "-m", "tests.support.clickhouse", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:  # noqa: S603
        try:
            assert server.stdout is not None
            yield int(server.stdout.readline())
        finally:
            server.terminate()


def _handler(session: Any) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length", 0))).decode()
            asked = parse_qs(urlsplit(self.path).query)
            text = "\n".join([*asked.get("query", []), body]).strip()
            try:
                found, status = session.query(text, asked.get("default_format", ["TabSeparated"])[0]).bytes(), 200
            except Exception as error:  # noqa: BLE001 (whatever ClickHouse raises is the server's answer)
                found, status = str(error).encode(), 500
            self.send_response(status)
            self.send_header("Content-Length", str(len(found)))
            self.send_header("X-ClickHouse-Timezone", "UTC")
            if status != 200:
                self.send_header("X-ClickHouse-Exception-Code", "1")
            self.end_headers()
            self.wfile.write(found)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    return Handler


def main() -> None:
    from chdb.session import Session  # noqa: PLC0415 (half a gigabyte, only where it is served)

    session = Session()
    for file in Path(sys.argv[1]).glob("*.parquet"):
        settings = "SETTINGS schema_inference_make_columns_nullable = 1"
        session.query(f"CREATE TABLE {file.stem} ENGINE = Memory AS SELECT * FROM file('{file}') {settings}")
    server = HTTPServer(("127.0.0.1", 0), _handler(session))
    print(server.server_port, flush=True)  # noqa: T201
    server.serve_forever()


if __name__ == "__main__":
    main()
