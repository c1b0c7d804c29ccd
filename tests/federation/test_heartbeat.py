"""Heartbeats of serving processes."""

import signal
import subprocess
import sys
from pathlib import Path

from dpcausal.federation.operation.heartbeat import FILE, Heartbeat, hold_lock, is_serving

_HOLD = """
import sys, time
from pathlib import Path
from dpcausal.federation.operation.heartbeat import hold_lock
hold_lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


def test_heartbeat_is_read_as_it_was_written(tmp_path: Path) -> None:
    beat = Heartbeat(1.0, 2.0, -0.5, "0.1.0", {"north": 2.0})
    beat.write(tmp_path)
    assert Heartbeat.read(tmp_path) == beat
    assert beat.is_recent(61.0)
    assert not beat.is_recent(63.0)


def test_absent_or_damaged_heartbeat_is_none(tmp_path: Path) -> None:
    assert Heartbeat.read(tmp_path) is None
    (tmp_path / FILE).write_text("{", encoding="ascii")
    assert Heartbeat.read(tmp_path) is None


def test_heartbeat_that_cannot_be_written_does_not_stop_a_process(tmp_path: Path) -> None:
    Heartbeat(1.0).write(tmp_path / "absent")
    assert not (tmp_path / "absent").exists()


def test_process_is_serving_until_it_is_killed(tmp_path: Path) -> None:
    assert not is_serving(tmp_path)
    with subprocess.Popen([sys.executable, "-c", _HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True) as child:  # noqa: S603
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        assert is_serving(tmp_path)
        hold_lock(tmp_path)  # a second process does not fail
        child.send_signal(signal.SIGKILL)
        child.wait()
    assert not is_serving(tmp_path)
