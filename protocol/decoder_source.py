"""Writes the source of one decoder. See `protocol.compiler` for the contract."""

from __future__ import annotations

import struct as structs
from typing import TYPE_CHECKING, Any

from protocol.fields import Field, Kind
from protocol.wire import DecodeError, intern_uuid, uvarint_tail

if TYPE_CHECKING:
    from protocol.schema import Struct

_FIXED_LENGTH_CODES = {Kind.STRING: ("h", 2), Kind.ARRAY: ("i", 4), Kind.BYTES: ("i", 4)}
_FIXED_LENGTH_CODES[Kind.RECORDS] = ("i", 4)


class DecoderSource:
    """Source text under construction, and the names it refers to."""

    def __init__(self, version: int, *, flexible: bool) -> None:
        self.names: dict[str, Any] = {
            "uvarint_tail": uvarint_tail,
            "intern_uuid": intern_uuid,
            "DecodeError": DecodeError,
        }
        self._version = version
        self._flexible = flexible
        self._lines: list[str] = []
        self._counter = 0

    def write(self, cls: type[Struct]) -> str:
        """Source of `decode(buffer, position, end)` for a whole message."""
        self._lines = ["def decode(buffer, position, end):"]
        value = self._struct(cls, 1)
        self._emit(1, f"return {value}, position")
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

    def _struct(self, cls: type[Struct], depth: int) -> str:
        """Read one struct; returns the expression that builds it."""
        variables: dict[str, str] = {}
        run: list[Field] = []
        tagged: list[Field] = []
        for field in cls.FIELDS:
            if self._version not in field.versions:
                variables[field.name] = self._default(field)
            elif self._version in field.tagged and self._flexible:
                variables[field.name] = self._variable(field.name)
                self._emit(depth, f"{variables[field.name]} = {self._default(field)}")
                tagged.append(field)
            elif field.kind.struct_code:
                run.append(field)
            else:
                self._fixed_run(run, variables, depth)
                run = []
                variables[field.name] = self._varying(field, depth)
        self._fixed_run(run, variables, depth)
        if self._flexible:
            self._tagged_fields(tagged, variables, depth)
        name = self._name(cls.__name__, cls)
        return f"{name}({', '.join(variables[field.name] for field in cls.FIELDS)})"

    def _default(self, field: Field) -> str:
        if isinstance(field.default, bool | int | str) and field.kind is not Kind.UUID:
            return repr(field.default)
        if field.kind is Kind.ARRAY and field.default is not None:
            return "[]"
        if field.kind is Kind.STRUCT and field.default is not None:
            return f"{self._name('make', field.struct)}()"
        return self._name("default", field.default) if field.default is not None else "None"

    def _fixed_run(self, run: list[Field], variables: dict[str, str], depth: int) -> None:
        """Read neighbouring fixed-size fields with one unpack."""
        if not run:
            return
        layout = structs.Struct(">" + "".join(field.kind.struct_code for field in run))
        targets = []
        for field in run:
            variables[field.name] = self._variable(field.name)
            targets.append(variables[field.name])
        unpack = self._name("unpack", layout.unpack_from)
        self._emit(depth, f"{', '.join(targets)}, = {unpack}(buffer, position)")
        self._emit(depth, f"position += {layout.size}")
        for field in run:
            if field.kind is Kind.UUID:
                variable = variables[field.name]
                self._emit(depth, f"{variable} = intern_uuid({variable})")

    def _tagged_fields(self, tagged: list[Field], variables: dict[str, str], depth: int) -> None:
        """Read the tag section; unknown tags are skipped (KIP-482)."""
        count = self._length(depth)
        if not tagged:
            self._emit(depth, f"while {count}:")
            self._emit(depth + 1, f"{count} -= 1")
            self._length(depth + 1)
            self._skip_tag(depth + 1)
            return
        self._emit(depth, f"while {count}:")
        inner = depth + 1
        self._emit(inner, f"{count} -= 1")
        tag = self._length(inner)
        size = self._length(inner)
        stop = self._variable("stop")
        self._emit(inner, f"{stop} = position + {size}")
        self._emit(inner, f"if {stop} > end:")
        self._emit(inner + 1, "raise DecodeError('tagged field is longer than the message')")
        for index, field in enumerate(tagged):
            self._emit(inner, f"{'elif' if index else 'if'} {tag} == {field.tag}:")
            value = self._value(field, inner + 1)
            self._emit(inner + 1, f"{variables[field.name]} = {value}")
            self._emit(inner + 1, f"if position != {stop}:")
            self._emit(
                inner + 2, f"raise DecodeError('tagged field {field.name} has a wrong size')"
            )
        self._emit(inner, "else:")
        self._emit(inner + 1, f"position = {stop}")

    def _skip_tag(self, depth: int) -> None:
        size = self._length(depth)
        self._emit(depth, f"position += {size}")
        self._emit(depth, "if position > end:")
        self._emit(depth + 1, "raise DecodeError('tagged field is longer than the message')")

    def _length(self, depth: int) -> str:
        """Read a uvarint; returns the variable that holds it."""
        variable = self._variable("length")
        self._emit(depth, f"{variable} = buffer[position]")
        self._emit(depth, "position += 1")
        self._emit(depth, f"if {variable} > 127:")
        self._emit(depth + 1, f"{variable}, position = uvarint_tail(buffer, position, {variable})")
        return variable

    def _size(self, kind: Kind, depth: int) -> str:
        """Read a length or count in this version's form; -1 stands for null."""
        if self._flexible:
            variable = self._length(depth)
            self._emit(depth, f"{variable} -= 1")
            return variable
        code, size = _FIXED_LENGTH_CODES[kind]
        unpack = self._name("unpack", structs.Struct(">" + code).unpack_from)
        variable = self._variable("length")
        self._emit(depth, f"{variable}, = {unpack}(buffer, position)")
        self._emit(depth, f"position += {size}")
        return variable

    def _value(self, field: Field, depth: int) -> str:
        """Read one value of any kind; returns an expression for it."""
        if field.kind.struct_code:
            holder: dict[str, str] = {}
            self._fixed_run([field], holder, depth)
            return holder[field.name]
        return self._varying(field, depth)

    def _varying(self, field: Field, depth: int) -> str:
        if field.kind is Kind.STRUCT:
            return self._nested(field, depth)
        result = self._variable(field.name or "element")
        size = self._size(field.kind, depth)
        self._emit(depth, f"if {size} < 0:")
        if self._version in field.nullable:
            self._emit(depth + 1, f"if {size} != -1:")
            self._emit(depth + 2, f"raise DecodeError('negative length of {field.name}')")
            self._emit(depth + 1, f"{result} = None")
        else:
            self._emit(depth + 1, f"raise DecodeError('{field.name} may not be null')")
        self._emit(depth, "else:")
        least = self._least(field.element) if field.element else 1
        needed = size if least == 1 else f"{size} * {least}"
        self._emit(depth + 1, f"if {needed} > end - position:")
        self._emit(depth + 2, f"raise DecodeError('{field.name} is longer than the message')")
        if field.kind is Kind.ARRAY:
            self._elements(field, result, size, depth + 1)
        else:
            slice_ = f"buffer[position:position + {size}]"
            wrap = {Kind.STRING: f"str({slice_}, 'utf-8')", Kind.BYTES: f"bytes({slice_})"}
            self._emit(depth + 1, f"{result} = {wrap.get(field.kind, slice_)}")
            self._emit(depth + 1, f"position += {size}")
        return result

    def _least(self, field: Field) -> int:
        """Least bytes that a value takes: bounds what a count may claim."""
        if field.kind.struct_code:
            return structs.calcsize(">" + field.kind.struct_code)
        if field.kind is not Kind.STRUCT:
            return 1 if self._flexible else structs.calcsize(_FIXED_LENGTH_CODES[field.kind][0])
        assert field.struct is not None
        tags = 1 if self._flexible else 0
        return tags + sum(
            self._least(inner)
            for inner in field.struct.FIELDS
            if self._version in inner.versions
            and not (self._flexible and self._version in inner.tagged)
            and not (inner.kind is Kind.STRUCT and self._version in inner.nullable)
        )

    def _nested(self, field: Field, depth: int) -> str:
        assert field.struct is not None
        if self._version not in field.nullable:
            result = self._variable(field.name)
            value = self._struct(field.struct, depth)
            self._emit(depth, f"{result} = {value}")
            return result
        result = self._variable(field.name)
        unpack = self._name("unpack", structs.Struct(">b").unpack_from)
        self._emit(depth, f"{result}, = {unpack}(buffer, position)")
        self._emit(depth, "position += 1")
        self._emit(depth, f"if {result} < 0:")
        self._emit(depth + 1, f"{result} = None")
        self._emit(depth, "else:")
        value = self._struct(field.struct, depth + 1)
        self._emit(depth + 1, f"{result} = {value}")
        return result

    def _elements(self, field: Field, result: str, size: str, depth: int) -> None:
        element = field.element
        assert element is not None
        if element.kind.struct_code and element.kind is not Kind.UUID:
            code = element.kind.struct_code
            width = structs.calcsize(">" + code)
            unpack = self._name("unpack", structs.unpack_from)
            self._emit(depth, f"{result} = list({unpack}('>%d{code}' % {size}, buffer, position))")
            self._emit(depth, f"position += {size} * {width}")
            return
        self._emit(depth, f"{result} = []")
        append = self._variable("append")
        self._emit(depth, f"{append} = {result}.append")
        index = self._variable("index")
        self._emit(depth, f"for {index} in range({size}):")
        if element.kind is Kind.STRUCT:
            assert element.struct is not None
            value = self._struct(element.struct, depth + 1)
        else:
            value = self._value(element, depth + 1)
        self._emit(depth + 1, f"{append}({value})")
