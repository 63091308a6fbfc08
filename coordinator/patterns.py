"""Regular expressions of clients, by RE2 as in Apache Kafka by RE2/J: KIP-1152, KIP-848.

RE2 always takes time in proportion to pattern and text; Python's engine takes exponential time for
some (docs/decisions/0028-patterns-by-re2.md).
"""

from __future__ import annotations

from protocol.errors import ApiError, ErrorCode

LARGEST_BYTES = 512 * 1024
"""Memory of a compiled pattern. One that wants more is found out within some milliseconds."""

LONGEST_MATCH = 1_000_000
"""Instructions of a pattern times bytes of a text: at most eight nanoseconds each."""


class Pattern:
    """A compiled pattern."""

    __slots__ = ("_compiled", "_longest_match", "_size", "_subject", "_text")

    def __init__(
        self,
        text: str,
        longest: int,
        subject: str = "Transaction ID pattern",
        longest_match: int = LONGEST_MATCH,
    ) -> None:
        """`subject` names the pattern in error messages.

        Raises ApiError INVALID_REGULAR_EXPRESSION, also above ``longest`` characters.
        """
        import re2  # noqa: PLC0415  (3 MB and 20 ms, which few brokers ever need)

        self._subject = subject
        if len(text) > longest:
            raise self._refused(f"of {len(text)} characters", f"at most {longest} are allowed")
        options = re2.Options()
        options.max_mem = LARGEST_BYTES
        options.never_capture = True
        options.log_errors = False
        try:
            self._compiled = re2.compile(text, options)
        except re2.error as error:
            raise self._refused(f"`{text}`", _reason(error)) from None
        re2.purge()  # it would remember 128 patterns, of this size each
        self._text = text
        self._size: int = self._compiled.programsize
        self._longest_match = longest_match

    def matches(self, text: str) -> bool:
        """Return whether it matches the whole text. Raises as construction if that takes long."""
        if self._size * len(text.encode()) > self._longest_match:
            raise self._refused(f"`{self._text}`", "it is too large for ids as long as there are")
        return self._compiled.fullmatch(text) is not None

    def _refused(self, pattern: str, reason: str) -> ApiError:
        return ApiError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"{self._subject} {pattern} is not a valid regular expression: {reason}.",
        )


def _reason(error: Exception) -> str:
    """RE2's own words, which come as bytes."""
    [words] = error.args
    return words.decode(errors="replace") if isinstance(words, bytes) else str(words)
