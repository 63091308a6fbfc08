"""Compiles the codec of one (message, version) to Python source, once, in memory.

Why source: a walk over field descriptors costs about a microsecond a field; straight-line code with
neighbouring fixed-size fields fused into one `struct` call costs a tenth of that.

The decoder is the front door to hostile input. Every length and count is compared with what the
frame still holds before anything is allocated: an element of an array takes at least one byte, so a
count may not exceed the bytes left. Reads past the end raise IndexError or struct.error, which
`Message.decode_from` turns into DecodeError.

    decoder(buffer, position, end) -> (message, position after it)
    encoder(message, append) -> None        append takes bytes or a region standing for records
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from protocol.decoder_source import DecoderSource
from protocol.encoder_source import EncoderSource
from protocol.fields import UNSET

if TYPE_CHECKING:
    from collections.abc import Callable

    from protocol.schema import Message, Struct

    Decoder = Callable[..., tuple[Any, int]]
    Encoder = Callable[..., None]


def compile_init(cls: type[Struct]) -> Callable[..., None]:
    """An `__init__` with the fields as positional-or-keyword parameters in wire order."""
    names: dict[str, Any] = {"absent": object()}
    parameters, body = ["self"], []
    for field in cls.FIELDS:
        name = field.name
        default = field.default_value()
        if isinstance(default, list) or field.default is UNSET:
            names[f"make_{name}"] = field.default_value
            parameters.append(f"{name}=absent")
            body.append(f"    self.{name} = make_{name}() if {name} is absent else {name}")
        else:
            names[f"default_{name}"] = default
            parameters.append(f"{name}=default_{name}")
            body.append(f"    self.{name} = {name}")
    source = "\n".join([f"def __init__({', '.join(parameters)}):", *(body or ["    pass"])])
    return _execute(source, names, "__init__", f"{cls.__qualname__}.__init__")


def compile_decoder(cls: type[Message], version: int) -> Decoder:
    """Compile the reader of `version`; raises ValueError when the message does not have it."""
    _check_version(cls, version)
    generated = DecoderSource(version, flexible=version in cls.FLEXIBLE)
    source = generated.write(cls)
    return _execute(source, generated.names, "decode", f"{cls.__name__} v{version} decoder")


def compile_encoder(cls: type[Message], version: int) -> Encoder:
    """Compile the writer of `version`; raises ValueError when the message does not have it."""
    _check_version(cls, version)
    generated = EncoderSource(version, flexible=version in cls.FLEXIBLE)
    source = generated.write(cls)
    return _execute(source, generated.names, "encode", f"{cls.__name__} v{version} encoder")


def _check_version(cls: type[Message], version: int) -> None:
    if version not in cls.VERSIONS:
        raise ValueError(f"{cls.__name__} has versions {cls.VERSIONS}, not {version}")


def _execute(source: str, names: dict[str, Any], entry: str, title: str) -> Callable[..., Any]:
    exec(compile(source, f"<{title}>", "exec"), names)
    function: Callable[..., Any] = names[entry]
    return function
