"""Everything the shell raises across a module boundary.

* CorralError
  - SettingsError       a setting, a credential or a file the operator gave us cannot be used
  - DecodeError         an object or a line from outside cannot be read; names object and field
    - TooLong           it has more bytes than are read
  - ApiError            the API server said no; carries its status, reason and message
    - Forbidden         403: a rule is missing in our ClusterRole
    - NotFound          404: the object, or the whole resource, does not exist
    - Conflict          409: another write came first, or a precondition did not hold
    - Gone              410: the version or page asked for has expired; list again
    - TooManyRequests   429: the API server asks to wait (`retry_after`)
    - Unreachable       no answer at all: the request may or may not have been carried out
      - NotListening    nothing listens at its address: it was not sent
    - NotLeading        a write that was not sent: another Corral may lead by now

A pod that fits nowhere is not here: it is an answer.
"""

from __future__ import annotations

import re
from http import HTTPStatus

_IS_OF_RIGHTS = re.compile(r'User "[^"]*" cannot [a-z]+ (?:resource|path) "')


class CorralError(Exception):
    """Any failure this program knows by name."""


class SettingsError(CorralError):
    """The operator has to change something before this can work."""


class DecodeError(CorralError):
    """Bytes from outside do not mean what they should; the message names object and field."""


class TooLong(DecodeError):
    """An answer or a line has more bytes than its reader takes; the rest of it was not received."""


class ApiError(CorralError):
    """The API server refused a request.

    Units: `retry_after` in seconds; None where the answer did not ask for a pause.
    """

    def __init__(
        self,
        status: int,
        reason: str = "",
        message: str = "",
        retry_after: float | None = None,
    ) -> None:
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after
        code = f"{status} " if status else ""  # 0: no answer, so none
        super().__init__(f"{code}{reason}: {message.strip()}")

    @property
    def may_pass(self) -> bool:
        """Whether the same request may succeed a moment later."""
        return self.status >= HTTPStatus.INTERNAL_SERVER_ERROR

    def in_words(self, what: str) -> str:
        """One short sentence for an event; `what` was asked of the API server."""
        return f"the API server refused the {what}: {self.status} {self.reason}".rstrip()


class Forbidden(ApiError):
    """403: our identity may not do this, or a policy does not let anyone."""

    @property
    def is_of_rights(self) -> bool:
        """Whether we lack the right, and not what we send is what is refused.

        So it may be for a moment: an API server that starts has not read yet who may do what.
        Source: k8s.io/apiserver pkg/endpoints/handlers/responsewriters/errors.go (v0.36).
        """
        return _IS_OF_RIGHTS.search(self.message) is not None


class NotFound(ApiError):
    """404: no such object, or no such resource."""


class Conflict(ApiError):
    """409: the object changed, exists already, or is not the one the request names."""


class Gone(ApiError):
    """410: the resourceVersion or continue token is too old."""


class TooManyRequests(ApiError):
    """429: overload or a full disruption budget."""

    may_pass = True


class Unreachable(ApiError):
    """No complete answer arrived: refused, cut or timed out. Whether it took effect is unknown."""

    may_pass = True

    def __init__(self, message: str) -> None:
        super().__init__(0, "Unreachable", message)

    def in_words(self, what: str) -> str:
        """The same, whether or not it was carried out."""
        return f"the API server did not answer the {what}"


class NotListening(Unreachable):
    """The connection was refused: the API server is down, or about to start."""


class NotLeading(ApiError):
    """Not sent: another Corral may lead by now."""

    may_pass = True

    def __init__(self) -> None:
        super().__init__(
            0, "NotLeading", "this Corral, or the kube-scheduler beside it, does not lead"
        )

    def in_words(self, what: str) -> str:
        """The same; it was not sent."""
        return self.message


_BY_STATUS: dict[int, type[ApiError]] = {
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Gone,
    429: TooManyRequests,
}


def api_error(status: int, reason: str, message: str, retry_after: float | None = None) -> ApiError:
    """Return the member of the tree that belongs to an HTTP status."""
    return _BY_STATUS.get(status, ApiError)(status, reason, message, retry_after)
