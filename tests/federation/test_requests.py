import gc
import signal
import subprocess
import sys
from pathlib import Path
from threading import Thread

import pytest

from dpcausal.errors import LedgerError
from dpcausal.federation.coordinator.requests import Requests

WRITING = """
import sys
from dpcausal.federation.coordinator.requests import Requests

requests = Requests(sys.argv[1])
requests.store("request", "study", "asked")
for place in range(100_000):
    requests.accept("request", "north", str(place))
    print(place, flush=True)
"""


def test_stored_messages_survive_a_kill(tmp_path: Path) -> None:
    file = tmp_path / "requests.db"
    command = [sys.executable, "-c", WRITING, str(file)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:  # noqa: S603 (our own text)
        assert writer.stdout is not None
        printed = [writer.stdout.readline().strip() for _ in range(20)]
        writer.send_signal(signal.SIGKILL)
        printed += writer.stdout.read().split()
    stored = [text for _, text, _ in Requests(file).messages("request")]
    assert stored[: len(printed)] == printed
    assert len(stored) <= len(printed) + 1


@pytest.mark.parametrize("file", ["a file", ":memory:"])
def test_requests_and_messages_are_stored_in_order(file: str, tmp_path: Path) -> None:
    requests = Requests(":memory:" if file == ":memory:" else tmp_path / "requests.db")
    for request, study in (("one", "study"), ("two", "study"), ("three", "another")):
        requests.store(request, study, f"sealed {request}")
        requests.store(request, study, "sealed once more")
    for request, site, text in (
        ("one", "north", "a"),
        ("one", "south", "b"),
        ("two", "north", "c"),
        ("three", "north", "d"),
    ):
        requests.accept(request, site, text)
    assert [each[:2] for each in requests.messages("one")] == [("north", "a"), ("south", "b")]
    assert requests.messages_of("study", "north") == ["a", "c"]
    requests.count("one")
    requests.count("one")
    assert (requests.attempts("one"), requests.attempts("two")) == (2, 0)


def test_file_that_is_not_a_store_is_refused(tmp_path: Path) -> None:
    (tmp_path / "letter").write_text("Dear Anna, " * 1000)
    for file in (tmp_path / "letter", tmp_path, tmp_path / "no" / "folder"):
        with pytest.raises(LedgerError, match="Hint"):
            Requests(file)


def test_store_may_be_collected_in_another_thread(tmp_path: Path) -> None:
    stores = [Requests(tmp_path / "requests.db")]
    thread = Thread(target=stores.clear)
    thread.start()
    thread.join()
    gc.collect()
    assert stores == []
