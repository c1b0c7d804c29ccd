"""Masks of secure sums: an attack on transcripts, and time and bytes of a site.

`python -m benchmarks.secure_masks --part attack cost --json`; each part's figures are stored as soon as it is done. The
part `peers` needs phe and tenseal, which dpcausal does not use.
"""

import argparse
import csv
import io
import json
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from benchmarks.parts import add_result_options, done, kept, result_file, shown
from dpcausal.audit import lower_bound
from dpcausal.federation.secure.coordinator import open_sum
from dpcausal.federation.secure.session import SiteSession
from tests.support.secure_sums import SecureSum, received_by
from tests.support.transcript_attack import TICKS, Attack

SETTINGS = ((4, 2, 1), (6, 3, 1), (12, 8, 0))
SITES = (3, 12, 50)
COUNTS = (10, 1_000, 40_000)
NUMBER = 10**12
"""A sum in ticks, as a plain message would hold it."""


def attack(runs: int) -> dict[str, Any]:
    """Return what the audit shows of epsilon with one share fewer than opens a victim, and with that share."""
    return {"lines": [_attacked(*setting, missing, runs) for setting in SETTINGS for missing in (1, 0)]}


def _attacked(sites: int, honest: int, colluding: int, missing: int, runs: int) -> dict[str, Any]:
    attacked = Attack(sites, honest, colluding, leaked=honest - missing)
    one, other = (attacked.transcripts(number, max(runs // 1_000, 1), 1_000) for number in (0, TICKS))
    bound = lower_bound(one, other)
    return {
        "sites": sites,
        "honest": honest,
        "colluding": colluding,
        "threshold": honest + colluding,
        "shares": honest + colluding - missing,
        "epsilon": attacked.epsilon,
        "bound": round(bound.epsilon, 3),
        "confidence": bound.confidence,
        "runs": len(one),
    }


def cost() -> dict[str, Any]:
    """Return time and bytes of one site, and the coordinator's time, with two thirds of the sites honest."""
    return {"lines": [line for sites in SITES for line in _costs(sites)]}


def _costs(sites: int) -> Iterator[dict[str, Any]]:
    threshold = -(-2 * sites // 3)
    run = SecureSum(sites, threshold)
    keys_ms = _milliseconds(lambda: SiteSession.new("5a" * 32, "site00", run.names, threshold).keys())
    fresh = run.sessions["site00"].to_json()
    shares_ms = _milliseconds(lambda: SiteSession.from_json(fresh).shares(run.keys))
    run.share()
    shared = {name: session.to_json() for name, session in run.sessions.items()}
    for count in COUNTS:
        own = received_by("site00", run.shares)
        mask_ms = _milliseconds(lambda: SiteSession.from_json(shared["site00"]).mask(run.shares, count, own))  # noqa: B023
        run.sessions = {name: SiteSession.from_json(text) for name, text in shared.items()}
        run.confirmed = {}
        summed = run.names[:threshold]
        sent = run.mask({name: [NUMBER] * count for name in summed})
        headers = run.headers(summed)
        confirm_ms = _milliseconds(lambda: run.sessions["site00"].confirm(headers))  # noqa: B023
        run.confirm(summed)
        unmask_ms = _milliseconds(lambda: run.sessions["site00"].unmask(run.confirmed))
        answers = run.unmask(summed)
        opened = partial(open_sum, {name: sent[name] for name in summed}, run.keys, answers, threshold)
        if opened() != [threshold * NUMBER] * count:
            raise AssertionError
        open_ms = _milliseconds(opened)
        plain = _bytes([NUMBER] * count)
        out = [run.keys["site00"], run.shares["site00"], sent["site00"], run.confirmed["site00"], answers["site00"]]
        sharings = {name: body["sharing"] for name, body in run.shares.items()}
        received = [run.keys, sharings, own, headers, run.confirmed]
        yield {
            "sites": sites,
            "threshold": threshold,
            "count": count,
            "site_ms": round(keys_ms + shares_ms + mask_ms + confirm_ms + unmask_ms, 2),
            "mask_ms": round(mask_ms, 2),
            "coordinator_ms": round(open_ms, 1),
            "sent_bytes": sum(map(_bytes, out)),
            "received_bytes": sum(map(_bytes, received)),
            "plain_bytes": plain,
        }


def _milliseconds(work: Callable[[], object], repeats: int = 15) -> float:
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        taken.append(1_000 * (time.process_time() - start))
    return min(taken)


def _bytes(body: object) -> int:
    return len(json.dumps(body).encode())


def peers() -> dict[str, Any]:
    """Return time and bytes of the same sums with homomorphic encryption, where its libraries are installed."""
    from benchmarks.peers import homomorphic  # noqa: PLC0415 (needs libraries that dpcausal does not)

    return {"lines": [*homomorphic.paillier(10, 12, NUMBER), *homomorphic.ckks(COUNTS, 12, NUMBER)]}


def tables(result: Mapping[str, Any]) -> dict[str, Iterator[str]]:
    """Return the table of docs/proofs/secure_sums.md, by its place."""
    return {"transcript attack": _attack_table(result)}


def costs(result: Mapping[str, Any]) -> str:
    """Return what masks cost, and the same sums by homomorphic encryption, as CSV."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["method", "sites", "numbers", "a site's ms", "sent kB", "received kB", "coordinator's ms"])
    for line in result["cost"]["lines"]:
        kilobytes = (f"{line[name] / 1_000:.1f}" for name in ("sent_bytes", "received_bytes"))
        times = f"{line['site_ms']:.0f}", f"{line['coordinator_ms']:.0f}"
        rows.writerow(["masks", line["sites"], line["count"], times[0], *kilobytes, times[1]])
    for line in result["peers"]["lines"]:
        sent = f"{line['sent_bytes'] / 1_000:.1f}"
        rows.writerow([line["method"], 12, line["count"], f"{line['site_ms']:.0f}", sent, "", ""])
    return text.getvalue()


def _attack_table(result: Mapping[str, Any]) -> Iterator[str]:
    yield "| sites | $h$ | $c$ | $k$ | shares of the victim's key | epsilon | shown at least |"
    yield "|---" * 7 + "|"
    for line in result["attack"]["lines"]:
        names = ("sites", "honest", "colluding", "threshold", "shares")
        yield f"| {' | '.join(str(line[name]) for name in names)} | {line['epsilon']:g} | {line['bound']:.2f} |"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.secure_masks", description=__doc__)
    parser.add_argument("--part", nargs="+", choices=["attack", "cost", "peers"], help="attack and cost, if left out")
    parser.add_argument("--runs", type=int, default=50_000, help="transcripts of each table")
    add_result_options(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    chosen = parser.parse_args()
    file = result_file(parser, chosen, "secure_masks")
    parts = {"attack": lambda: attack(chosen.runs), "cost": cost, "peers": peers}
    for part in chosen.part or ("attack", "cost"):
        done(part, parts[part], file)
    print(shown(kept(file), chosen.json))


if __name__ == "__main__":
    main()
