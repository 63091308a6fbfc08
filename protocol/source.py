"""Python source under construction: lines, indentation, and the objects that the text refers to."""

from __future__ import annotations

import contextlib
import struct as structs
from typing import TYPE_CHECKING, Any

from protocol.wire import Packers, Unpackers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INDENT = "    "
UNPACKERS = {code: Unpackers(code) for code in "?bhHiqd"}
PACKERS = {code: Packers(code) for code in "?bhHiqd"}


class Source:
    """Text of one function. `names` holds the names it needs besides its arguments."""

    def __init__(self, **names: object) -> None:
        self.names: dict[str, Any] = dict(names)
        self._lines: list[str] = []
        self._depth = 0
        self._counter = 0

    def __str__(self) -> str:
        return "\n".join(self._lines)

    def line(self, text: str) -> None:
        """Add one line at the present depth."""
        self._lines.append(INDENT * self._depth + text)

    @contextlib.contextmanager
    def block(self, header: str) -> Iterator[None]:
        """Add `header`, and indent the lines added inside the `with`."""
        self.line(header)
        self._depth += 1
        yield
        self._depth -= 1

    def variable(self, hint: str) -> str:
        """A local name that nothing else uses."""
        self._counter += 1
        return f"{hint}_{self._counter}"

    def bind(self, hint: str, value: object) -> str:
        """A name by which the text may refer to `value`."""
        name = self.variable(hint)
        self.names[name] = value
        return name

    def packer(self, codes: str) -> str:
        """A name for a function that packs big-endian fields of these `struct` codes."""
        return self._shared(f"pack_{codes}", structs.Struct(">" + codes).pack)

    def unpacker(self, codes: str) -> str:
        """A name for a function that unpacks big-endian fields of these `struct` codes."""
        return self._shared(f"unpack_{codes}", structs.Struct(">" + codes).unpack_from)

    def unpackers(self, code: str) -> str:
        """A name for the functions that unpack arrays of this `struct` code."""
        return self._shared(f"unpackers_{code}", UNPACKERS[code])

    def packers(self, code: str) -> str:
        """A name for the functions that pack arrays of this `struct` code."""
        return self._shared(f"packers_{code}", PACKERS[code])

    def _shared(self, name: str, value: object) -> str:
        name = name.replace("?", "z")
        self.names.setdefault(name, value)
        return name

    def compiled(self, entry: str, title: str) -> Callable[..., Any]:
        """Run the text and return the function `entry`; `title` shows in tracebacks."""
        exec(compile(str(self), f"<{title}>", "exec"), self.names)  # noqa: S102 - our own text
        function: Callable[..., Any] = self.names[entry]
        return function
