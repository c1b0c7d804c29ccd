"""The networks of a site: one folder for each federation that it belongs to.

The first is the folder `nvflare` of the site, the others are in its folder `networks`.
"""

import json
from pathlib import Path
from shlex import quote

from dpcausal.errors import StudyError
from dpcausal.federation.transports.nvflare.provision import is_pending


def networks(folder: Path) -> dict[str, Path]:
    """Return the folder of each network of a site, by the name of the federation."""
    places = [folder / "nvflare", *sorted(folder.glob("networks/*"))]
    return {_federation(place): place for place in places if (place / "participant.yml").exists()}


def new_network(folder: Path, federation: str) -> Path:
    """Return the folder for a network that a site does not belong to yet.

    Raises:
        StudyError: If the site belongs to it, or has requested to.
    """
    known = networks(folder)
    if federation in known:
        raise StudyError(
            problem=f"This site has requested a kit of {federation} already; it has requested kits of "
            f"{', '.join(known)}",
            hint="renew the kit with: dpcausal site renew FOLDER; or, to start again, remove the folder "
            f"{known[federation]}, and the coordinator must admit the site again.",
        )
    return folder / "networks" / federation if known else folder / "nvflare"


def network_of(folder: Path, federation: str = "", *, pending: bool = False) -> Path:
    """Return the folder of one network.

    Args:
        federation: The name of the federation; not needed if there is only one.
        pending: Whether only networks count in which the site waits for the answer to a request.

    Raises:
        StudyError: If there is none, or more than one without a name.
    """
    found = {name: place for name, place in networks(folder).items() if is_pending(place) or not pending}
    named = [place for name, place in found.items() if federation in {"", name}]
    if len(named) != 1:
        hint = "name one with --network." if found else "start with: dpcausal site request-kit FOLDER FEDERATION."
        if pending and not found and networks(folder):
            here = quote(str(folder))
            hint = f"continue with: dpcausal site serve {here}; or request a new kit with: dpcausal site renew {here}."
        raise StudyError(
            expected=f"one network{' with a pending request' if pending else ''} of the site in {folder}",
            got=", ".join(found) or "none",
            hint=hint,
        )
    return named[0]


def _federation(network: Path) -> str:
    return str(json.loads((network / "participant.yml").read_text(encoding="utf-8"))["name"])
