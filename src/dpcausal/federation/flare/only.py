"""What a site lets in before anything of it runs: the one question of this package, to the letter."""

import json
from pathlib import Path

from nvflare.apis.app_validation import AppValidator
from nvflare.lighter.tool_consts import NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE

from dpcausal.federation.flare.question import AT_SITES, SITE_CONFIG

_SIGNATURES = (NVFLARE_SIG_FILE, NVFLARE_SUBMITTER_CRT_FILE)


class OnlyTheQuestion(AppValidator):  # type: ignore[misc]
    """Refuses everything but the one configuration that `question` writes.

    NVFlare asks the site's rights as well, but to it the role "super" has them all, and who owns the authority can make
    a certificate with that role.
    """

    def validate(self, app_folder: str) -> tuple[str, dict[str, object]]:
        """Why it is refused, if it is; and nothing else to say about it."""
        folder = Path(app_folder)
        found = {each.relative_to(folder).as_posix() for each in folder.rglob("*") if each.name not in _SIGNATURES}
        if found == {"config", f"config/{SITE_CONFIG}"} and _is_the_question(folder / "config" / SITE_CONFIG):
            return "", {}
        return "not the question of dpcausal", {}


def _is_the_question(file: Path) -> bool:
    try:
        return bool(json.loads(file.read_text(encoding="utf-8")) == AT_SITES)
    except (OSError, ValueError, RecursionError):
        return False
