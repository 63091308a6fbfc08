"""Writes the source of one encoder. See `protocol.compiler` for the contract."""

from __future__ import annotations

import struct as structs
from typing import TYPE_CHECKING, Any

from protocol.fields import UNSET, Field, Kind
from protocol.wire import encode_uvarint

if TYPE_CHECKING:
    from protocol.schema import Struct


class EncoderSource:
    """Source text under construction, and the names it refers to."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        self.names: dict[str, Any] = {"uvarint": encode_uvarint}
        self._version = version
        self._flexible = flexible
        self._lines: list[str] = []
        self._counter = 0

    def write(self, cls: type[Struct]) -> str:
        """Source of `encode(message, append)` for a whole message."""
        self._lines = ["def encode(message, append):"]
        self._struct(cls, "message", 1)
        self._emit(1, "return None")
        return "\n".join(self._lines)

    def _emit(self, depth: int, text: str) -> None:
        self._lines.append("    " * depth + text)

    def _variable(self, hint: str) -> str:
        self._counter += 1
        return f"{hint}_{self._counter}"

    def _name(self, hint: str, value: Any) -> str:
        name = self._variable(hint)
        self.names[name] = value
        return name

    def _struct(self, cls: type[Struct], owner: str, depth: int) -> None:
        run: list[Field] = []
        tagged: list[Field] = []
        for field in cls.FIELDS:
            if self._version not in field.versions:
                continue
            if self._version in field.tagged and self._flexible:
                tagged.append(field)
            elif field.kind.struct_code:
                run.append(field)
            else:
                self._fixed_run(run, owner, depth)
                run = []
                self._varying(field, f"{owner}.{field.name}", depth)
        self._fixed_run(run, owner, depth)
        if self._flexible:
            self._tagged_fields(sorted(tagged, key=lambda field: field.tag or 0), owner, depth)

    def _fixed_run(self, run: list[Field], owner: str, depth: int) -> None:
        """Write neighbouring fixed-size fields with one pack."""
        if not run:
            return
        pack = self._packer("".join(field.kind.struct_code for field in run))
        values = ", ".join(self._fixed(field, f"{owner}.{field.name}") for field in run)
        self._emit(depth, f"append({pack}({values}))")

    def _packer(self, codes: str) -> str:
        return self._name("pack", structs.Struct(">" + codes).pack)

    @staticmethod
    def _fixed(field: Field, value: str) -> str:
        return f"{value}.bytes" if field.kind is Kind.UUID else value

    def _tagged_fields(self, tagged: list[Field], owner: str, depth: int) -> None:
        """Write the tag section: in tag order, leaving out fields that have their default."""
        if not tagged:
            self._emit(depth, "append(b'\\0')")
            return
        section = self._variable("tags")
        self._emit(depth, f"{section} = []")
        for field in tagged:
            value = f"{owner}.{field.name}"
            self._emit(depth, f"if {self._differs(field, value)}:")
            inner = depth + 1
            parts = self._variable("parts")
            self._emit(inner, f"{parts} = []")
            outer_append = self._variable("outer")
            self._emit(inner, f"{outer_append} = append")
            self._emit(inner, f"append = {parts}.append")
            if field.kind.struct_code:
                pack = self._packer(field.kind.struct_code)
                self._emit(inner, f"append({pack}({self._fixed(field, value)}))")
            else:
                self._varying(field, value, inner)
            self._emit(inner, f"append = {outer_append}")
            tag = self._name("tag", encode_uvarint(field.tag or 0))
            self._emit(inner, f"{parts} = b''.join({parts})")
            self._emit(inner, f"{section}.append({tag} + uvarint(len({parts})) + {parts})")
        self._emit(depth, f"append(uvarint(len({section})) + b''.join({section}))")

    def _differs(self, field: Field, value: str) -> str:
        if field.default is None:
            return f"{value} is not None"
        if field.kind is Kind.ARRAY:
            return f"{value} is None or {value}"
        if field.kind is Kind.STRUCT and field.default is UNSET:
            return f"{value} != {self._name('default', field.default_value())}"
        return f"{value} != {self._name('default', field.default)}"

    def _size(self, kind: Kind, expression: str) -> str:
        """Expression for a length in this version's form."""
        if self._flexible:
            return f"uvarint({expression} + 1)"
        return f"{self._packer('h' if kind is Kind.STRING else 'i')}({expression})"

    def _null(self, kind: Kind) -> str:
        if self._flexible:
            return "b'\\0'"
        return repr(b"\xff\xff" if kind is Kind.STRING else b"\xff\xff\xff\xff")

    def _varying(self, field: Field, value: str, depth: int) -> None:
        if field.kind is Kind.STRUCT:
            self._nested(field, value, depth)
            return
        local = self._variable(field.name or "element")
        self._emit(depth, f"{local} = {value}")
        if self._version in field.nullable:
            self._emit(depth, f"if {local} is None:")
            self._emit(depth + 1, f"append({self._null(field.kind)})")
            self._emit(depth, "else:")
            depth += 1
        elif field.kind is Kind.RECORDS:
            self._emit(depth, f"if {local} is None:")
            self._emit(depth + 1, f"{local} = b''")
        if field.kind is Kind.STRING:
            self._emit(depth, f"{local} = {local}.encode()")
            self._emit(depth, f"append({self._size(field.kind, f'len({local})')} + {local})")
        elif field.kind is Kind.ARRAY:
            self._emit(depth, f"append({self._size(field.kind, f'len({local})')})")
            self._elements(field, local, depth)
        else:
            self._emit(depth, f"append({self._size(field.kind, f'len({local})')})")
            self._emit(depth, f"append({local})")

    def _nested(self, field: Field, value: str, depth: int) -> None:
        assert field.struct is not None
        local = self._variable(field.name)
        self._emit(depth, f"{local} = {value}")
        if self._version in field.nullable:
            self._emit(depth, f"if {local} is None:")
            self._emit(depth + 1, "append(b'\\xff')")
            self._emit(depth, "else:")
            depth += 1
            self._emit(depth, "append(b'\\1')")
        self._struct(field.struct, local, depth)

    def _elements(self, field: Field, local: str, depth: int) -> None:
        element = field.element
        assert element is not None
        if element.kind.struct_code and element.kind is not Kind.UUID:
            pack = self._name("pack", structs.pack)
            code = element.kind.struct_code
            self._emit(depth, f"append({pack}('>%d{code}' % len({local}), *{local}))")
            return
        item = self._variable("item")
        self._emit(depth, f"for {item} in {local}:")
        if element.kind is Kind.STRUCT:
            assert element.struct is not None
            self._struct(element.struct, item, depth + 1)
        elif element.kind is Kind.UUID:
            self._emit(depth + 1, f"append({item}.bytes)")
        else:
            self._varying(element, item, depth + 1)
