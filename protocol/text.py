r"""Text in UTF-8, with bytes that are none read and written as Java does.

A client may send any bytes as its id or as the name of a group, and Apache Kafka answers: Java
reads what is no UTF-8 as U+FFFD, one for each sequence that is cut short or cannot be. Python
replaces the same sequences but for surrogates, one sequence to Java and two or three to Python:

    sent          ED A0 80      ED A0      ED A0 41      F0 9F 98      C0 80
    Java          U+FFFD        U+FFFD     U+FFFD A      U+FFFD        U+FFFD U+FFFD
    Python        3 x U+FFFD    2 x        2 x and A     U+FFFD        U+FFFD U+FFFD

The other way, half a surrogate pair has no bytes in UTF-8, and Java writes a question mark. No
client can send one, but a JSON document in ZooKeeper and a property file can hold it.
"""

from __future__ import annotations

import re
from typing import Final

_SURROGATE: Final = re.compile(rb"\xed[\xa0-\xbf][\x80-\xbf]?")
"""The bytes of half a surrogate pair, or the first two; 0xED only ever begins a sequence."""
_NEVER_UTF_8: Final = b"\xff"


def text_of(content: bytes) -> str:
    """Text of bytes that should be UTF-8; never fails."""
    try:
        return content.decode()
    except UnicodeDecodeError:
        return replaced(content)


def replaced(content: bytes) -> str:
    """Text of bytes that are not UTF-8, in time linear to their number."""
    return _SURROGATE.sub(_NEVER_UTF_8, content).decode(errors="replace")


def joined_pairs(text: str) -> str:
    """The same text with pairs of surrogates as the characters that they stand for."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def unpaired_replaced(text: str) -> bytes:
    """Bytes of text with surrogates in it: a question mark for each that is not in a pair."""
    return joined_pairs(text).encode(errors="replace")
