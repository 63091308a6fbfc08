"""Writes the source of one decoder. `protocol.compiler` says what a decoder promises.

The text is straight: one statement per group of fields, with what is rare in functions of
`protocol.wire`. Neighbouring fields of fixed size are read by one `unpack`, together with the first
byte of the length that follows them. For

    class Example(Request, key=..., versions="0-9", flexible="9+"):
        class Topic(Struct):
            name: str = string()
            partitions: list[int] = array(int32)
        acks: int = int16()
        timeout_ms: int = int32()
        topics: list[Topic] = array(Topic)

version 9 becomes (comments are not part of it)

    def decode(buffer, position, end):
        message = Example_1()                                   # an object without values
        message.acks, message.timeout_ms, count_2, = unpack_hiB(buffer, position)
        position += 7
        count_2 -= 1                                            # flexible lengths are length + 1
        if count_2 > 126:                                       # a varint of more than one byte
            count_2, position = long_length(buffer, position, count_2)
        if not 0 <= count_2 * 3 <= end - position:              # a topic has three bytes or more
            raise refuse_count(count_2, 'topics')
        message.topics = items_3 = []
        for _ in range(count_2):
            topics_4 = Topic_5()
            size_6 = buffer[position]
            position += 1
            size_6 -= 1
            if 0 <= size_6 <= 126:
                try:
                    topics_4.name = short[size_6](buffer, position)[0].decode()
                except UnicodeDecodeError:
                    topics_4.name = replaced(short[size_6](buffer, position)[0])
                position += size_6
            else:                                               # null, or a longer string
                topics_4.name, position = long_compact_string(buffer, position, size_6, 'name')
            count_7 = buffer[position]
            position += 1
            count_7 -= 1
            if count_7 > 126:
                count_7, position = long_length(buffer, position, count_7)
            if not 0 <= count_7 * 4 <= end - position:
                raise refuse_count(count_7, 'partitions')
            topics_4.partitions = list(unpackers_i[count_7](buffer, position))
            position += count_7 * 4
            tags_8 = buffer[position]
            position += 1
            if tags_8:
                position = skip_tags(buffer, position, tags_8)
            items_3.append(topics_4)
        tags_9 = buffer[position]
        position += 1
        if tags_9:
            position = skip_tags(buffer, position, tags_9)
        return message, position

**In steps** it is a generator with the same statements, for messages so long that others must be
served while they are read. It yields the number of elements announced so far, each time that
`STEP_ELEMENTS` of an array were read, and returns the same as the function.
"""

from __future__ import annotations

import struct as structs
from typing import TYPE_CHECKING

from protocol import wire
from protocol.defaults import blank, write_default
from protocol.fields import Field, Kind
from protocol.source import Source

if TYPE_CHECKING:
    from protocol.schema import Struct

LENGTH_CODES = {Kind.STRING: "h", Kind.ARRAY: "i", Kind.BYTES: "i", Kind.RECORDS: "i"}
"""Struct code of a length in versions that are not flexible."""

LONGEST_SHORT = wire.CONTINUES - 2
"""A flexible length up to this (length + 1 < 128) takes one byte."""

STEP_ELEMENTS = 16
STEP_NUMBERS = 4096
"""Numbers of an array that are read at once where other requests wait."""


class DecoderSource:
    """Text of the decoder of one version, being written."""

    def __init__(self, version: int, *, is_flexible: bool, in_steps: bool = False) -> None:
        self._version = version
        self._is_flexible = is_flexible
        self._in_steps = in_steps
        self._run: list[tuple[str, str]] = []
        self._after_run: list[str] = []
        """Statements on the values of the run, once they are read."""
        self.source = Source(
            DecodeError=wire.DecodeError,
            checked_stop=wire.checked_stop,
            intern_uuid=wire.intern_uuid,
            known_uuids=wire.KNOWN_UUIDS,
            long_compact_string=wire.long_compact_string,
            long_length=wire.long_length,
            long_string=wire.long_string,
            many_tags=wire.many_tags,
            read_tag=wire.read_tag,
            refuse_count=wire.refuse_count,
            replaced=wire.replaced,
            short=wire.SHORT,
            skip_tags=wire.skip_tags,
        )

    def write(self, cls: type[Struct]) -> Source:
        """Text of `decode(buffer, position, end)` for a whole message."""
        with self.source.block("def decode(buffer, position, end):"):
            if self._in_steps:
                self.source.line("elements = 0")
            self._struct(cls, "message")
            if self._in_steps:
                self.source.line("yield elements")
            self.source.line("return message, position")
        return self.source

    def _struct(self, cls: type[Struct], target: str) -> None:
        """Make an object named `target` and read its fields."""
        self.source.line(f"{target} = {blank(self.source, cls)}")
        self._members(cls, target)

    def _members(self, cls: type[Struct], target: str) -> None:
        tagged: list[Field] = []
        for field in cls.FIELDS:
            place = f"{target}.{field.name}"
            if self._is_tagged(field):
                tagged.append(field)
                write_default(self.source, field, place)
            elif self._version not in field.versions:
                write_default(self.source, field, place)
            else:
                self._value(field, place)
        if self._is_flexible:
            self._tags(tagged, target)
        self._end_run()

    def _is_tagged(self, field: Field) -> bool:
        return self._is_flexible and field.tag is not None

    def _value(self, field: Field, place: str) -> None:
        """Read one value into `place`, an attribute or a variable."""
        if field.kind is Kind.UUID:
            self._uuid(place)
        elif field.kind.struct_code:
            self._run.append((field.kind.struct_code, place))
        elif field.kind is Kind.STRUCT:
            self._nested(field, place)
        elif field.kind is Kind.STRING:
            self._string(field, place)
        elif field.kind is Kind.ARRAY:
            self._array(field, place)
        else:
            self._bytes(field, place)

    # A run: fields of fixed size that are read together.

    def _end_run(self, code: str = "", last: str = "") -> None:
        """Read the fields of the run, and one more, a length, into the variable `last`."""
        run = [*self._run, (code, last)] if code else self._run
        if run == [("B", last)]:
            self.source.line(f"{last} = buffer[position]")
            self.source.line("position += 1")
        elif run:
            codes = "".join(code for code, _ in run)
            targets = ", ".join(place for _, place in run)
            self.source.line(f"{targets}, = {self.source.unpacker(codes)}(buffer, position)")
            self.source.line(f"position += {structs.calcsize('>' + codes)}")
        for line in self._after_run:
            self.source.line(line)
        self._run = []
        self._after_run = []

    def _length(self, kind: Kind, hint: str) -> str:
        """Read a length, as far as one `unpack` goes; null becomes -1."""
        length = self.source.variable(hint)
        if self._is_flexible:
            self._end_run("B", length)
            self.source.line(f"{length} -= 1")
        else:
            self._end_run(LENGTH_CODES[kind], length)
        return length

    def _finish_length(self, length: str) -> None:
        if self._is_flexible:
            with self.source.block(f"if {length} > {LONGEST_SHORT}:"):
                self.source.line(f"{length}, position = long_length(buffer, position, {length})")

    def _records_length(self) -> str:
        """Read the length of records, which mostly takes two bytes: both at once.

        The second byte is there even if the length takes one: a tag section follows.
        """
        size, second = self.source.variable("size"), self.source.variable("second")
        self._run.append(("B", size))
        self._end_run("B", second)
        self.source.line(f"{size} -= 1")
        with self.source.block(f"if {size} <= {LONGEST_SHORT}:"):
            self.source.line("position -= 1")
        with self.source.block(f"elif {second} < {wire.CONTINUES}:"):
            self.source.line(f"{size} += ({second} << 7) - {wire.CONTINUES}")
        with self.source.block("else:"):
            self.source.line(f"{size}, position = long_length(buffer, position - 1, {size})")
        return size

    # Values of varying size.

    def _uuid(self, place: str) -> None:
        raw = self.source.variable("raw")
        self._run.append(("16s", raw))
        self._after_run.append(f"{place} = known_uuids.get({raw}) or intern_uuid({raw})")

    def _string(self, field: Field, place: str) -> None:
        size = self._length(Kind.STRING, "size")
        with self.source.block(f"if 0 <= {size} <= {LONGEST_SHORT}:"):
            content = f"short[{size}](buffer, position)[0]"
            # The usual case pays nothing for the other, as it would for an argument of `decode`.
            with self.source.block("try:"):
                self.source.line(f"{place} = {content}.decode()")
            with self.source.block("except UnicodeDecodeError:"):
                self.source.line(f"{place} = replaced({content})")
            self.source.line(f"position += {size}")
        if self._version in field.nullable:
            with self.source.block(f"elif {size} == -1:"):
                self.source.line(f"{place} = None")
        with self.source.block("else:"):
            reader = "long_compact_string" if self._is_flexible else "long_string"
            arguments = f"buffer, position, {size}, {field.name!r}"
            self.source.line(f"{place}, position = {reader}({arguments})")

    def _bytes(self, field: Field, place: str) -> None:
        if field.kind is Kind.RECORDS and self._is_flexible:
            size = self._records_length()
        else:
            size = self._length(field.kind, "size")
            self._finish_length(size)
        if self._version in field.nullable:
            with self.source.block(f"if {size} == -1:"):
                self.source.line(f"{place} = None")
            with self.source.block("else:"):
                self._slice(field, place, size)
        else:
            self._slice(field, place, size)

    def _slice(self, field: Field, place: str, size: str) -> None:
        self.source.line(f"stop = position + {size}")
        with self.source.block(f"if {size} < 0 or stop > end:"):
            self.source.line(f"checked_stop(buffer, position, {size}, {field.name!r})")
        value = "buffer[position:stop]"
        self.source.line(f"{place} = {value if field.kind is Kind.RECORDS else f'bytes({value})'}")
        self.source.line("position = stop")

    def _nested(self, field: Field, place: str) -> None:
        assert field.struct is not None
        if self._version in field.nullable:
            mark = self.source.variable("mark")
            self._end_run("b", mark)
            with self.source.block(f"if {mark} < 0:"):
                self.source.line(f"{place} = None")
            with self.source.block("else:"):
                self._inner_struct(field.struct, place)
        else:
            self._inner_struct(field.struct, place)

    def _inner_struct(self, cls: type[Struct], place: str) -> None:
        target = self.source.variable(cls.__name__.lower())
        self._end_run()
        self._struct(cls, target)
        self.source.line(f"{place} = {target}")

    # Arrays.

    def _array(self, field: Field, place: str) -> None:
        count = self._length(Kind.ARRAY, "count")
        self._finish_length(count)
        if self._version in field.nullable:
            with self.source.block(f"if {count} == -1:"):
                self.source.line(f"{place} = None")
            with self.source.block("else:"):
                self._elements(field, place, count)
        else:
            self._elements(field, place, count)

    def _elements(self, field: Field, place: str, count: str) -> None:
        element = field.element
        assert element is not None
        least = self._least(element)
        with self.source.block(f"if not 0 <= {count} * {least} <= end - position:"):
            self.source.line(f"raise refuse_count({count}, {field.name!r})")
        if self._in_steps:
            self.source.line(f"elements += {count}")
        code = element.kind.struct_code
        if code and element.kind is not Kind.UUID:
            self._numbers(place, count, code)
            return
        items = self.source.variable("items")
        self.source.line(f"{place} = {items} = []")
        with self.source.block(f"for _ in range({count}):"):
            self._element(field, element, items)
            if self._in_steps:
                with self.source.block(f"if not len({items}) % {STEP_ELEMENTS}:"):
                    self.source.line("yield elements")

    def _numbers(self, place: str, count: str, code: str) -> None:
        """Read an array of numbers into `place`."""
        unpackers, size = self.source.unpackers(code), structs.calcsize(">" + code)
        if not self._in_steps:
            self.source.line(f"{place} = list({unpackers}[{count}](buffer, position))")
            self.source.line(f"position += {count} * {size}")
            return
        self.source.line(f"{place} = []")
        with self.source.block(f"while {count}:"):
            some = self.source.variable("some")
            self.source.line(f"{some} = min({count}, {STEP_NUMBERS})")
            self.source.line(f"{place} += {unpackers}[{some}](buffer, position)")
            self.source.line(f"position += {some} * {size}")
            self.source.line(f"{count} -= {some}")
            with self.source.block(f"if {count}:"):
                self.source.line("yield elements")

    def _element(self, field: Field, element: Field, items: str) -> None:
        item = self.source.variable(field.name)
        if element.kind is Kind.STRUCT:
            assert element.struct is not None
            self._struct(element.struct, item)
        else:
            self._value(element, item)
            self._end_run()
        self.source.line(f"{items}.append({item})")

    def _least(self, field: Field) -> int:
        """Minimum size of a value in bytes: bounds the count that an array may claim."""
        if field.kind.struct_code:
            return structs.calcsize(">" + field.kind.struct_code)
        if field.kind is not Kind.STRUCT:
            return 1 if self._is_flexible else structs.calcsize(">" + LENGTH_CODES[field.kind])
        if self._version in field.nullable:
            return 1
        assert field.struct is not None
        present = (
            inner
            for inner in field.struct.FIELDS
            if self._version in inner.versions and not self._is_tagged(inner)
        )
        return max(1, int(self._is_flexible) + sum(self._least(inner) for inner in present))

    # Tagged fields.

    def _tags(self, tagged: list[Field], target: str) -> None:
        """Read the tag section; unknown tags are skipped."""
        count = self.source.variable("tags")
        self._end_run("B", count)
        with self.source.block(f"if {count}:"):
            if not tagged:
                self.source.line(f"position = skip_tags(buffer, position, {count})")
                return
            with self.source.block(f"if {count} >= {wire.CONTINUES}:"):
                self.source.line(f"{count}, position = many_tags(buffer, position, {count})")
            with self.source.block(f"while {count}:"):
                self.source.line(f"{count} -= 1")
                self._known_tags(tagged, target)

    def _known_tags(self, tagged: list[Field], target: str) -> None:
        tag, stop = self.source.variable("tag"), self.source.variable("stop")
        self.source.line(f"{tag}, position, {stop} = read_tag(buffer, position)")
        keyword = "if"
        for field in tagged:
            with self.source.block(f"{keyword} {tag} == {field.tag}:"):
                self._tagged_value(field, f"{target}.{field.name}")
            keyword = "elif"
        with self.source.block("else:"):
            self.source.line(f"position = {stop}")
        with self.source.block(f"if position != {stop}:"):
            self.source.line(f"raise DecodeError('tagged field %d has a wrong size' % {tag})")

    def _tagged_value(self, field: Field, place: str) -> None:
        """Read a tagged value; a nullable struct has an unsigned varint in front, zero for null."""
        if field.kind is Kind.STRUCT and self._version in field.nullable:
            assert field.struct is not None
            mark = self.source.variable("mark")
            self._end_run("B", mark)
            with self.source.block(f"if not {mark}:"):
                self.source.line(f"{place} = None")
            with self.source.block("else:"):
                self._inner_struct(field.struct, place)
        else:
            self._value(field, place)
            self._end_run()
