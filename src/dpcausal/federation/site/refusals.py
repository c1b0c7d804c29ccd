"""Requests as a site reads them, and the refusals of those that it does not answer."""

from dpcausal.errors import EngineError, SessionError, TransportError
from dpcausal.federation.protocol.messages import STEPS, Code, Message, Request
from dpcausal.study.secure_settings import SecureSettings
from dpcausal.study.study import Study
from dpcausal.utils.hash_chain import digest_of_text


class RefusalError(Exception):
    """A request is not answered, for the reason in its code."""

    def __init__(self, code: Code) -> None:
        self.code = code
        super().__init__(code)


def code_of(error: Exception) -> Code:
    """Return the code that a requester receives for an error. Its text stays here, because it may quote the table."""
    match error:
        case RefusalError():
            return error.code
        case SessionError():
            return "refused_step"
        case MemoryError() | EngineError():
            return "stopped"
        case _:
            return "failed"


def refusal_about(body: str, site: str) -> Message:
    """Return a refusal of whatever is in a text, in the version of the protocol in which it was asked."""
    try:
        asked = Request.from_json(body)
    except TransportError:
        return Message(request=digest_of_text(body), study="", site=site, code="failed")
    return Message(request=asked.id, study="", site=site, code="failed", version=asked.version)


def read_request(body: str, requester: str) -> tuple[Request, Study]:
    """Read a request and its study."""
    try:
        request = Request.from_json(body)
        study = Study.from_toml(request.study)
    except Exception:  # noqa: BLE001 (a hostile text may break in ways that nobody listed)
        raise RefusalError("unreadable") from None
    if study.requester != requester:
        raise RefusalError("unknown_requester")
    if request.ask not in ("facts", "withdraw") and (request.ask in STEPS) != (study.secure_settings is not None):
        raise RefusalError("unreadable")  # a secure sum is never answered with plain releases, nor the reverse
    return request, study


def secure_settings_of(study: Study) -> SecureSettings:
    """Return the terms of a study that was read as one of secure sums."""
    settings = study.secure_settings
    if settings is None:
        raise RefusalError("unreadable")
    return settings
