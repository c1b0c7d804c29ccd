"""The bill of materials and the licences of what dpcausal installs: `python -m checks.supply_chain`.

Writes docs/licences.csv afresh; with `--bom FILE` also a bill of materials in CycloneDX 1.6 for the versions of this
environment. Ends with an error where a dependency has a licence that is unknown or not allowed here.
"""

import argparse
import csv
import io
import json
import re
import sys
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.metadata import Distribution, distribution
from pathlib import Path
from typing import Any

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import dpcausal
from checks.documents import ROOT
from checks.release import PROJECT

TABLE = ROOT / "docs" / "licences.csv"

ALLOWED = {
    *("0BSD", "Apache-2.0", "Apache-2.0 WITH LLVM-exception", "BSD-2-Clause", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT"),
    *("BSL-1.0", "HPND", "MPL-2.0", "MIT-0", "MIT-CMU", "PSF-2.0", "Python-2.0", "Unicode-3.0", "Unlicense", "Zlib"),
    *("LGPL-2.1-or-later", "LGPL-3.0-only", "LGPL-3.0-or-later"),
}
"""Licences that let an Apache-2.0 package depend on a library, by SPDX identifier. LGPL: imported, never changed."""

CLASSIFIERS = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "GNU Lesser General Public License v3 (LGPLv3)": "LGPL-3.0-only",
    "GNU Library or Lesser General Public License (LGPL)": "LGPL-2.1-or-later",
    "ISC License (ISCL)": "ISC",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
    "Python Software Foundation License": "PSF-2.0",
    "The Unlicense (Unlicense)": "Unlicense",
    "Zero-Clause BSD (0BSD)": "0BSD",
}
"""SPDX identifiers of the trove classifiers that older packages have in place of an expression."""

NAMES = {
    "3-clause bsd license": "BSD-3-Clause",
    "apache 2.0": "Apache-2.0",
    "apache license 2.0": "Apache-2.0",
    "apache license, version 2.0": "Apache-2.0",
    "bsd": "BSD-3-Clause",
    "mit license": "MIT",
    "new bsd": "BSD-3-Clause",
}
"""SPDX identifiers of what some packages write as their licence."""


@dataclass(frozen=True)
class Component:
    """One distribution that an installation brings."""

    name: str
    version: str
    licence: str
    extras: tuple[str, ...]

    @property
    def url(self) -> str:
        """Its package URL."""
        return f"pkg:pypi/{canonicalize_name(self.name)}@{self.version}"


def closure(requirements: Iterable[str]) -> set[str]:
    """Return the names of all distributions that requirements bring into this environment, directly and indirectly."""
    found: dict[str, set[str]] = {}
    for line in requirements:
        _add(Requirement(line), found, extras=("",))
    return set(found)


def _add(requirement: Requirement, found: dict[str, set[str]], extras: tuple[str, ...]) -> None:
    if requirement.marker and not any(requirement.marker.evaluate({"extra": extra}) for extra in extras):
        return
    name = canonicalize_name(requirement.name)
    new = (requirement.extras | {""}) - found.setdefault(name, set())
    found[name] |= new
    for line in distribution(name).requires or [] if new else []:
        _add(Requirement(line), found, extras=tuple(new))


def licence_of(package: Distribution) -> str:
    """Return the SPDX expression of a distribution's licence; empty where its metadata state none that is known."""
    stated = package.metadata
    classified = [
        CLASSIFIERS[name]
        for line in stated.get_all("Classifier") or []
        if line.startswith("License ::") and (name := line.rpartition(" :: ")[2]) in CLASSIFIERS
    ]
    (written,), (expression,) = ((stated.get_all(key) or [""])[:1] for key in ("License", "License-Expression"))
    written = written.strip()
    known = NAMES.get(written.lower(), written if is_allowed(written) else "")
    return expression or known or " AND ".join(dict.fromkeys(classified))


def is_allowed(expression: str) -> bool:
    """Return whether an SPDX expression offers a choice that is allowed, each of its parts being so."""
    while inner := re.search(r"\(([^()]*)\)", expression):
        expression = expression.replace(inner[0], "MIT" if is_allowed(inner[1]) else "refused")
    return any(set(choice.split(" AND ")) <= ALLOWED for choice in expression.split(" OR "))


def components() -> list[Component]:
    """Return everything that dpcausal and its extras bring, in the versions of this environment."""
    base = closure(PROJECT["dependencies"])
    brought = {extra: closure(lines) - base for extra, lines in PROJECT["optional-dependencies"].items()}
    found = []
    for name in sorted(base.union(*brought.values())):
        package = distribution(name)
        extras = () if name in base else tuple(extra for extra, names in brought.items() if name in names)
        found.append(Component(package.name, package.version, licence_of(package), extras))
    return found


def refusals(found: Iterable[Component]) -> list[str]:
    """Return what is wrong with the licences of components."""
    return [
        f"{each.name} {each.version}: {each.licence or 'no licence is known'}"
        for each in found
        if not is_allowed(each.licence)
    ]


def table(found: Iterable[Component]) -> str:
    """Return docs/licences.csv. Versions are left out: licences seldom change with them."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(["package", "installed with", "licence (SPDX)"])
    rows.writerows([each.name, ", ".join(each.extras) or "always", each.licence] for each in found)
    return text.getvalue()


def bill_of_materials(found: Iterable[Component]) -> dict[str, Any]:
    """Return a CycloneDX document; the same components always give the same one."""
    listed = list(found)
    own = {
        "type": "library",
        "bom-ref": "dpcausal",
        "name": "dpcausal",
        "version": dpcausal.__version__,
        "purl": f"pkg:pypi/dpcausal@{dpcausal.__version__}",
        "licenses": [{"expression": PROJECT["license"]}],
    }
    parts = [
        {
            "type": "library",
            "bom-ref": each.url,
            "name": each.name,
            "version": each.version,
            "purl": each.url,
            "scope": "optional" if each.extras else "required",
            "licenses": [{"expression": each.licence}],
        }
        for each in listed
    ]
    serial = uuid.uuid5(uuid.NAMESPACE_URL, json.dumps([own, parts], sort_keys=True))
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{serial}",
        "version": 1,
        "metadata": {"component": own},
        "components": parts,
        "dependencies": [{"ref": "dpcausal", "dependsOn": _direct(listed)}],
    }


def _direct(found: Iterable[Component]) -> list[str]:
    lines = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    named = {canonicalize_name(Requirement(line).name) for line in lines}
    return sorted(each.url for each in found if canonicalize_name(each.name) in named)


def main() -> None:
    """Write the page, and the bill of materials where asked."""
    parser = argparse.ArgumentParser(
        prog="python -m checks.supply_chain", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--bom", type=Path, metavar="FILE", help="also write the bill of materials, as CycloneDX JSON")
    chosen, found = parser.parse_args(), components()
    if wrong := refusals(found):
        sys.exit("\n".join(["Licences that are unknown or not allowed:", *wrong]))
    TABLE.write_text(table(found), encoding="utf-8")
    if chosen.bom:
        chosen.bom.write_text(json.dumps(bill_of_materials(found), indent=2) + "\n", encoding="utf-8")
    print(f"{len(found)} dependencies, all with an allowed licence")


if __name__ == "__main__":
    main()
