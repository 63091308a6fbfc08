r"""Writes the source of one encoder. `protocol.compiler` says what an encoder promises.

Neighbouring fields of fixed size are written by one `pack`, together with the length that follows
them: in flexible versions only while length + 1 is below 128, and so takes one byte. For

    class Example(Response, request=..., versions="0-9", flexible="9+"):
        class Topic(Struct):
            error_code: int = int16()
            name: str | None = string(nullable="0+")
        throttle_time_ms: int = int32()
        topics: list[Topic] = array(Topic)

version 9 becomes (comments are not part of it)

    def encode(message, parts):
        small = []
        append = small.append
        value_1 = message.topics
        size_2 = len(value_1) + 1
        if size_2 < 128:
            append(pack_iB(message.throttle_time_ms, size_2))
        else:
            append(pack_i(message.throttle_time_ms) + uvarint(size_2))
        for topics_3 in value_1:
            value_4 = topics_3.name
            if value_4 is None:
                value_4 = b''
                size_5 = 0                                      # says null
            else:
                try:
                    value_4 = value_4.encode()
                except UnicodeEncodeError:
                    value_4 = unpaired_replaced(value_4)
                size_5 = len(value_4) + 1
            if size_5 < 128:
                append(pack_hB(topics_3.error_code, size_5))
            else:
                append(pack_h(topics_3.error_code) + uvarint(string_length(size_5)))
            append(value_4)
            append(b'\x00')                                     # no tagged fields
        append(b'\x00')
        parts.append(b''.join(small))

Fields at the end of a struct that mostly have their default (null, empty, no tags) are checked
together first, and written by the same `pack` as the fields before them if all have it. So a
successful response to Produce is one call. For `name: str | None = string(nullable="0+",
default=None)` above it would be

            if topics_3.name is not None:
                ...                                             # as it stands above
            else:
                append(pack_hxx(topics_3.error_code))           # null, no tagged fields

Records are not joined: the bytes before them go to `parts`, then the records, uncopied.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from protocol.decoder_source import LENGTH_CODES
from protocol.fields import Field, Kind
from protocol.source import Source
from protocol.wire import (
    CONTINUES,
    ONE_BYTE,
    encode_uvarint,
    string_length,
    unpaired_replaced,
)

if TYPE_CHECKING:
    from protocol.schema import Struct

PIECES_AT_ONCE: Final = 500
"""Joined by an encoder in steps: joining and freeing a million takes a third of a second."""


class EncoderSource:
    """Text of the encoder of one version, being written."""

    def __init__(self, version: int, *, is_flexible: bool, in_steps: bool = False) -> None:
        """With `in_steps` a generator, which pauses behind each struct of an array."""
        self._version = version
        self._is_flexible = is_flexible
        self._in_steps = in_steps
        self._run: list[tuple[str, str]] = []
        self.source = Source(
            one_byte=ONE_BYTE,
            string_length=string_length,
            unpaired_replaced=unpaired_replaced,
            uvarint=encode_uvarint,
        )

    def write(self, cls: type[Struct]) -> Source:
        """Text of `encode(message, parts)` for a whole message."""
        with self.source.block("def encode(message, parts):"):
            self.source.line("small = []")
            self.source.line("append = small.append")
            self._struct(cls, "message")
            self._end_run()
            self.source.line("parts.append(b''.join(small))")
            if self._in_steps:
                self.source.line("yield")
        return self.source

    def _struct(self, cls: type[Struct], owner: str) -> None:
        """Write the fields of `owner`. The last of them may still be in the run."""
        present = [field for field in cls.FIELDS if self._version in field.versions]
        tagged = [field for field in present if self._is_flexible and field.tag is not None]
        tagged.sort(key=lambda field: field.tag or 0)
        plain = [field for field in present if field not in tagged]
        rare = self._rare(plain, has_tags=bool(tagged))
        for field in plain[: len(plain) - len(rare)]:
            self._value(field, f"{owner}.{field.name}")
        if rare or tagged:
            self._end(rare, tagged, owner)
        elif self._is_flexible:
            self._run.append(("x", ""))

    def _rare(self, plain: list[Field], *, has_tags: bool) -> list[Field]:
        """The fields at the end that are mostly null, or an empty array, as is their default."""
        rare: list[Field] = []
        for field in reversed(plain if self._is_flexible else ()):
            is_null = field.default is None and self._version in field.nullable
            is_empty = field.kind is Kind.ARRAY and field.default == ()
            if field.kind is Kind.STRUCT or not (is_null or (is_empty and (rare or has_tags))):
                break
            rare.insert(0, field)
        return rare

    def _end(self, rare: list[Field], tagged: list[Field], owner: str) -> None:
        """Write the last fields of `owner` and its tags; if all are as usual, in one call."""
        run = list(self._run)
        conditions = [self._differs(field, f"{owner}.{field.name}") for field in rare + tagged]
        with self.source.block(f"if {' or '.join(conditions)}:"):
            for field in rare:
                self._value(field, f"{owner}.{field.name}")
            if tagged:
                self._tags(tagged, owner)
            else:
                self._run.append(("x", ""))
            self._end_run()
        with self.source.block("else:"):
            defaults = [("x", "") if field.default is None else ("B", "1") for field in rare]
            self._run = [*run, *defaults, ("x", "")]
            self._end_run()

    def _value(self, field: Field, value: str) -> None:
        """Write the value of the expression `value`."""
        if field.kind is Kind.UUID:
            self._run.append(("16s", f"{value}.bytes"))
        elif field.kind.struct_code:
            self._run.append((field.kind.struct_code, value))
        elif field.kind is Kind.STRUCT:
            self._nested(field, value)
        else:
            self._varying(field, value)

    # A run: fields of fixed size that are written together.

    def _end_run(self) -> None:
        if self._run:
            self.source.line(f"append({self._packed()})")
        self._run = []

    def _packed(self, *last: tuple[str, str]) -> str:
        """Expression for the bytes of the run and of `last`."""
        run = [*self._run, *last]
        if all(code == "x" for code, _ in run):
            return repr(b"\0" * len(run))
        codes = "".join(code for code, _ in run)
        values = ", ".join(value for _, value in run if value)
        return f"{self.source.packer(codes)}({values})"

    def _end_run_with_length(self, kind: Kind, size: str) -> None:
        """Write the run and a length: in flexible versions the length plus one, as a varint."""
        if not self._is_flexible:
            self._run.append((LENGTH_CODES[kind], size))
            self._end_run()
            return
        joined = f"one_byte[{size}]" if not self._run else self._packed(("B", size))
        apart = f"{self._packed()} + " if self._run else ""
        with self.source.block(f"if {size} < {CONTINUES}:"):
            self.source.line(f"append({joined})")
        with self.source.block("else:"):
            long = f"string_length({size})" if kind is Kind.STRING else size
            self.source.line(f"append({apart}uvarint({long}))")
        self._run = []

    # Values of varying size.

    def _varying(self, field: Field, value: str) -> None:
        local, size = self.source.variable("value"), self.source.variable("size")
        self.source.line(f"{local} = {value}")
        may_be_null = self._version in field.nullable or field.kind is Kind.RECORDS
        if may_be_null:
            is_null_written = self._version in field.nullable
            self._measure_nullable(field, local, size, is_null_written=is_null_written)
        else:
            self._measure(field, local, size)
        self._end_run_with_length(field.kind, size)
        if field.kind is Kind.ARRAY:
            self._elements(field, local)
        elif field.kind is Kind.RECORDS:
            self._records(local)
        else:
            self.source.line(f"append({local})")

    def _measure_nullable(
        self, field: Field, local: str, size: str, *, is_null_written: bool
    ) -> None:
        with self.source.block(f"if {local} is None:"):
            self.source.line(f"{local} = b''")
            null = 0 if self._is_flexible else -1
            self.source.line(f"{size} = {null if is_null_written else null + 1}")
        with self.source.block("else:"):
            self._measure(field, local, size)

    def _measure(self, field: Field, local: str, size: str) -> None:
        if field.kind is Kind.STRING:
            with self.source.block("try:"):
                self.source.line(f"{local} = {local}.encode()")
            with self.source.block("except UnicodeEncodeError:"):
                self.source.line(f"{local} = unpaired_replaced({local})")
        self.source.line(f"{size} = len({local}){' + 1' if self._is_flexible else ''}")

    def _records(self, local: str) -> None:
        """Flush the bytes written so far to `parts`, then the records, uncopied."""
        with self.source.block(f"if {local}:"):
            self.source.line("parts.append(b''.join(small))")
            self.source.line("small.clear()")
            self.source.line(f"parts.append({local})")

    def _nested(self, field: Field, value: str) -> None:
        assert field.struct is not None
        local = self.source.variable("value")
        self.source.line(f"{local} = {value}")
        if self._version not in field.nullable:
            self._struct(field.struct, local)
            return
        self._end_run()
        with self.source.block(f"if {local} is None:"):
            self.source.line("append(b'\\xff')")
        with self.source.block("else:"):
            self.source.line("append(b'\\1')")
            self._struct(field.struct, local)
            self._end_run()

    def _elements(self, field: Field, local: str) -> None:
        element = field.element
        assert element is not None
        code = element.kind.struct_code
        if code and element.kind is not Kind.UUID:
            with self.source.block(f"if {local}:"):
                self.source.line(f"append({self.source.packers(code)}[len({local})](*{local}))")
            return
        item = self.source.variable(field.name)
        with self.source.block(f"for {item} in {local}:"):
            if element.kind is Kind.STRUCT:
                assert element.struct is not None
                self._struct(element.struct, item)
            else:
                self._value(element, item)
            self._end_run()
            if self._in_steps and element.kind is Kind.STRUCT:
                with self.source.block(f"if len(small) > {PIECES_AT_ONCE}:"):
                    self.source.line("parts.append(b''.join(small))")
                    self.source.line("small.clear()")
                self.source.line("yield")

    # Tagged fields.

    def _tags(self, tagged: list[Field], owner: str) -> None:
        """Write the tag section: in tag order, leaving out fields that have their default."""
        self._end_run()
        section = self.source.variable("tags")
        self.source.line(f"{section} = []")
        for field in tagged:
            value = f"{owner}.{field.name}"
            with self.source.block(f"if {self._differs(field, value)}:"):
                self._tagged_field(field, value, section)
        self.source.line(f"append(uvarint(len({section})))")
        self.source.line(f"append(b''.join({section}))")

    def _tagged_field(self, field: Field, value: str, section: str) -> None:
        """Write tag, size and value. The size comes first, so the value is gathered apart."""
        outer, pieces = self.source.variable("outer"), self.source.variable("pieces")
        self.source.line(f"{outer} = append")
        self.source.line(f"{pieces} = []")
        self.source.line(f"append = {pieces}.append")
        if field.kind is Kind.STRUCT and self._version in field.nullable:
            self._nullable_tagged_struct(field, value)
        else:
            self._value(field, value)
        self._end_run()
        self.source.line(f"append = {outer}")
        self.source.line(f"{pieces} = b''.join({pieces})")
        tag = encode_uvarint(field.tag or 0)
        self.source.line(f"{section}.append({tag!r} + uvarint(len({pieces})) + {pieces})")

    def _nullable_tagged_struct(self, field: Field, value: str) -> None:
        """Write a struct after an unsigned varint, 0 for null; untagged ones have a signed byte."""
        assert field.struct is not None
        local = self.source.variable("value")
        self.source.line(f"{local} = {value}")
        with self.source.block(f"if {local} is None:"):
            self.source.line("append(b'\\0')")
        with self.source.block("else:"):
            self.source.line("append(b'\\1')")
            self._struct(field.struct, local)
            self._end_run()

    def _differs(self, field: Field, value: str) -> str:
        """Condition that `value` is not the default, which is not written."""
        if field.default is None:
            return f"{value} is not None"
        null = f"{value} is None or " if self._version in field.nullable else ""
        if field.kind is Kind.ARRAY:
            return f"{null}{value}"
        if field.kind is Kind.STRUCT:
            assert field.struct is not None
            inner = (self._differs(part, f"{value}.{part.name}") for part in field.struct.FIELDS)
            return f"{null}({' or '.join(inner)})"
        if field.kind is Kind.UUID:
            default = self.source.bind("default", field.default)
            return f"({value} is not {default} and {value} != {default})"
        return f"{null}{value} != {field.default!r}"
