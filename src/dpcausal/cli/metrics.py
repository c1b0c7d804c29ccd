"""Metrics of a site or a coordinator in Prometheus' format, computed anew at each look."""

import threading
from collections.abc import Callable, Iterator
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest, start_http_server
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from dpcausal.errors import DpcausalError, StudyError
from dpcausal.federation.operation.health import BROKEN, Check, Status

_VALUES = {
    "serving": ("serving", "Whether a process serves."),
    "connected": ("connected", "Whether the site had contact with the server within a minute."),
    "certificate": ("certificate_days_left", "Days until the certificate expires."),
    "clock": ("clock_offset_seconds", "Clock of the server minus that of this machine."),
    "waiting": ("waiting_studies", "Studies that wait for a decision."),
    "ledger": ("ledger_whole", "Whether the ledger is whole and holds all receipts."),
    "audit_log": ("audit_log_entries", "Entries of the audit log."),
    "requests": ("requests", "Requests in the coordinator's store."),
    "disk": ("disk_free_bytes", "Free bytes on the disk of the folder."),
    "backup": ("last_backup_timestamp_seconds", "When the last backup was taken."),
}


class _StatusCollector(Collector):
    def __init__(self, look: Callable[[], Status]) -> None:
        self._look = look

    def collect(self) -> Iterator[GaugeMetricFamily]:
        """Yield all metrics. If the folder cannot be read at all, only that it is broken."""
        try:
            status = self._look()
        except DpcausalError:
            yield GaugeMetricFamily("dpcausal_level", "0 healthy, 1 attention, 2 broken.", value=BROKEN)
            return
        yield GaugeMetricFamily("dpcausal_level", "0 healthy, 1 attention, 2 broken.", value=status.level)
        levels = GaugeMetricFamily("dpcausal_check_level", "The level of each check.", labels=["check"])
        for check in status.checks:
            levels.add_metric([check.name], check.level)
        yield levels
        for name, (metric, words) in _VALUES.items():
            found = [check for check in status.checks if _kind(check) == name and check.value is not None]
            if found:
                family = GaugeMetricFamily(f"dpcausal_{metric}", words, labels=["check"])
                for check in found:
                    family.add_metric([check.name], float(check.value))
                yield family
        yield from _special({check.name: check.value for check in status.checks})


def exposition(look: Callable[[], Status]) -> str:
    """Return the metrics as text."""
    return generate_latest(_registry(look)).decode()


def serve(look: Callable[[], Status], listen: str) -> None:
    """Serve the metrics over HTTP until the process is stopped."""
    host, _, port = listen.rpartition(":")
    try:
        start_http_server(int(port), addr=host.strip("[]"), registry=_registry(look))
    except (OSError, ValueError, OverflowError) as error:
        raise StudyError(
            problem=f"The address {listen} cannot be used ({type(error).__name__})",
            hint="choose a free port on an address of this machine, such as 127.0.0.1:9464.",
        ) from None
    threading.Event().wait()


def _registry(look: Callable[[], Status]) -> CollectorRegistry:
    registry = CollectorRegistry()
    registry.register(_StatusCollector(look))
    return registry


def _kind(check: Check) -> str:
    return next((name for name in _VALUES if check.name == name or check.name.startswith(f"{name}_")), check.name)


def _special(values: dict[str, Any]) -> Iterator[GaugeMetricFamily]:
    if budget := values.get("budget"):
        for amount in ("epsilon", "delta"):
            family = GaugeMetricFamily(f"dpcausal_budget_{amount}", f"The {amount} by part.", labels=["part"])
            for part, amounts in budget.items():
                family.add_metric([part], amounts[amount])
            yield family
    if "sites" in values:
        family = GaugeMetricFamily("dpcausal_site_connected", "Whether a site is connected.", labels=["site"])
        for site, connected in values["sites"].items():
            family.add_metric([site], connected)
        yield family
    versions = values["versions"]
    info = GaugeMetricFamily("dpcausal_info", "Versions.", labels=["dpcausal", "protocol"])
    info.add_metric([versions["dpcausal"], str(versions["protocol"])], 1)
    yield info
