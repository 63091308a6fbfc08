"""Errors for clients whose change the metadata store does not take."""

from __future__ import annotations

from typing import TYPE_CHECKING

from controller.metadata_store.store import OutcomeUnknownError, TooLargeError
from protocol.errors import ApiError, ErrorCode

if TYPE_CHECKING:
    from controller.metadata_store.store import StoreError


def of_store_error(error: StoreError) -> ApiError:
    """Say whether the change was made, was not, or may have been."""
    if isinstance(error, TooLargeError):
        return ApiError(ErrorCode.INVALID_CONFIG, f"That is too much: {error.reason}")
    if isinstance(error, OutcomeUnknownError):
        text = f"It may have been changed or not: {error.reason}"
        return ApiError(ErrorCode.REQUEST_TIMED_OUT, text)
    return ApiError(ErrorCode.REQUEST_TIMED_OUT, f"Nothing was changed: {error.reason}")
