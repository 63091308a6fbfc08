"""What a client is refused with: HTTP's status, and Confluent's error code and words."""

from __future__ import annotations

BAD_REQUEST = 400
SUBJECT_NOT_FOUND = 40401
VERSION_NOT_FOUND = 40402
SCHEMA_NOT_FOUND = 40403
SUBJECT_SOFT_DELETED = 40404
SUBJECT_NOT_SOFT_DELETED = 40405
VERSION_SOFT_DELETED = 40406
VERSION_NOT_SOFT_DELETED = 40407
NO_SUBJECT_COMPATIBILITY = 40408
NO_SUBJECT_MODE = 40409
INCOMPATIBLE_SCHEMA = 409
INVALID_SCHEMA = 42201
INVALID_VERSION = 42202
INVALID_COMPATIBILITY = 42203
INVALID_MODE = 42204
OPERATION_NOT_PERMITTED = 42205
REFERENCE_EXISTS = 42206
INVALID_SUBJECT = 42208
STORE_ERROR = 50001
STORE_TIMED_OUT = 50002

_CODES_OF_A_STATUS = 100


class RegistryError(Exception):
    """A request that cannot be done; `code` is Confluent's, its first three digits HTTP's."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @property
    def status(self) -> int:
        """HTTP's status."""
        is_bare = self.code < 10 * _CODES_OF_A_STATUS
        return self.code if is_bare else self.code // _CODES_OF_A_STATUS


def subject_not_found(subject: str) -> RegistryError:
    """Return the refusal of a subject that is not there."""
    return RegistryError(SUBJECT_NOT_FOUND, f"Subject '{subject}' not found.")


def version_not_found(version: object) -> RegistryError:
    """Return the refusal of a version that is not there."""
    return RegistryError(VERSION_NOT_FOUND, f"Version {version} not found.")
