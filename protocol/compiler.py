"""Compiles the constructor of each message, and the codec of each of its versions.

All is Python source, made and compiled once, in memory, when first used. A walk over field
descriptors costs about a microsecond a field; straight-line code with neighbouring fixed-size
fields in one `struct` call costs a tenth of that. To see the source generated for a message:

    print(compiler.decoder_source(ProduceRequest, 9))

The decoder is the front door to hostile input. Every length and count is compared with what the
frame still holds before anything is allocated: an element of an array takes at least one byte, so a
count may not exceed the bytes left. Reads past the end raise IndexError or struct.error, which
`Message.decode` turns into DecodeError.

    decoder(buffer, position, end) -> (message, position after it)        end is len(buffer)
    encoder(message, parts) -> None        appends buffers, and records as they are, to the list
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import TYPE_CHECKING, Any

from protocol.decoder_source import DecoderSource
from protocol.defaults import write_default
from protocol.encoder_source import EncoderSource
from protocol.fields import UNSET, Field, Kind
from protocol.source import Source

if TYPE_CHECKING:
    from protocol.schema import Message, Struct

Decoder = Callable[[Any, int, int], tuple[Any, int]]
Encoder = Callable[[Any, list[Any]], None]
StepDecoder = Callable[[Any, int, int], Generator[int, None, tuple[Any, int]]]
StepEncoder = Callable[[Any, list[Any]], Iterator[None]]


def compile_init(cls: type[Struct]) -> Callable[..., None]:
    """An `__init__` with the fields as keyword parameters."""
    source = init_source(cls)
    return source.compiled("__init__", f"{cls.__qualname__}.__init__")


def init_source(cls: type[Struct]) -> Source:
    """Text of the constructor. Defaults that can be changed are made afresh in each call."""
    source = Source(absent=object())
    parameters = ["self", "*"] if cls.FIELDS else ["self"]
    for field in cls.FIELDS:
        default = "absent" if _is_mutable(field) else source.bind("default", field.default)
        parameters.append(f"{field.name}={default}")
    with source.block(f"def __init__({', '.join(parameters)}):"):
        for field in cls.FIELDS:
            if _is_mutable(field):
                with source.block(f"if {field.name} is absent:"):
                    write_default(source, field, field.name)
            source.line(f"self.{field.name} = {field.name}")
        if not cls.FIELDS:
            source.line("pass")
    return source


def _is_mutable(field: Field) -> bool:
    return field.default is UNSET or (field.kind is Kind.ARRAY and field.default is not None)


def decoder_source(cls: type[Message], version: int) -> Source:
    """Text of the reader of `version`; raises ValueError when the message does not have it."""
    _check_version(cls, version)
    return DecoderSource(version, is_flexible=version in cls.FLEXIBLE).write(cls)


def encoder_source(cls: type[Message], version: int) -> Source:
    """Text of the writer of `version`; raises ValueError when the message does not have it."""
    _check_version(cls, version)
    return EncoderSource(version, is_flexible=version in cls.FLEXIBLE).write(cls)


def compile_step_encoder(cls: type[Message], version: int) -> StepEncoder:
    """Compile the writer of `version` that pauses behind each struct of an array."""
    _check_version(cls, version)
    is_flexible = version in cls.FLEXIBLE
    source = EncoderSource(version, is_flexible=is_flexible, in_steps=True).write(cls)
    return source.compiled("encode", f"{cls.__name__} v{version} encoder in steps")


def compile_decoder(cls: type[Message], version: int) -> Decoder:
    """Compile the reader of `version`; raises ValueError when the message does not have it."""
    return decoder_source(cls, version).compiled("decode", f"{cls.__name__} v{version} decoder")


def compile_step_decoder(cls: type[Message], version: int) -> StepDecoder:
    """Compile the reader of `version` that pauses while it reads an array."""
    _check_version(cls, version)
    source = DecoderSource(version, is_flexible=version in cls.FLEXIBLE, in_steps=True).write(cls)
    return source.compiled("decode", f"{cls.__name__} v{version} decoder in steps")


def compile_encoder(cls: type[Message], version: int) -> Encoder:
    """Compile the writer of `version`; raises ValueError when the message does not have it."""
    return encoder_source(cls, version).compiled("encode", f"{cls.__name__} v{version} encoder")


def _check_version(cls: type[Message], version: int) -> None:
    if version not in cls.VERSIONS:
        raise ValueError(f"{cls.__name__} has versions {cls.VERSIONS}, not {version}")
