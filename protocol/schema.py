"""Base classes of message declarations: slotted classes with compiled codecs.

A message is declared once, as a class body whose order is wire order, for all its versions (see
`protocol.fields`). The metaclass takes the specifiers out of the body and gives the class slots.
Nothing else happens at import: `__init__` and the codec of each (message, version) are compiled on
first use by `protocol.compiler`, so that a broker that never sees a message never pays for it.
"""

from __future__ import annotations

import struct as structs
from typing import TYPE_CHECKING, Any, ClassVar, Self, dataclass_transform

from protocol import compiler, fields
from protocol.fields import Field
from protocol.versions import NO_VERSIONS, Versions
from protocol.wire import Buffer, DecodeError, EncodeError, SizedRegion

if TYPE_CHECKING:
    from collections.abc import Iterator

    from protocol.api_keys import ApiKey

PREFIX_BYTES = 2
"""In front of a key or value of an internal topic."""

UNDECODABLE = (DecodeError, structs.error, IndexError)
"""Errors of compiled decoders for bytes that are not a valid message."""

UNENCODABLE = (EncodeError, structs.error)
"""Errors of compiled encoders for values that are too large for their fields."""

Part = Buffer | SizedRegion
"""One piece of an encoded message: bytes, or a region of a file to be sent in its place."""


@dataclass_transform(
    kw_only_default=True,
    field_specifiers=(
        fields.boolean,
        fields.int8,
        fields.int16,
        fields.uint16,
        fields.int32,
        fields.int64,
        fields.float64,
        fields.uuid,
        fields.string,
        fields.blob,
        fields.records,
        fields.array,
        fields.struct,
    ),
)
class StructMeta(type):
    """Collects the declared fields of a class body into `FIELDS` and `__slots__`."""

    def __new__(
        mcs, name: str, bases: tuple[type, ...], namespace: dict[str, Any], **options: object
    ) -> StructMeta:
        """Take the specifiers out of the class body."""
        declared = {key: value for key, value in namespace.items() if isinstance(value, Field)}
        for key, field in declared.items():
            field.name = key
            del namespace[key]
        namespace["__slots__"] = tuple(declared)
        namespace["FIELDS"] = tuple(declared.values())
        return super().__new__(mcs, name, bases, namespace, **options)


class Struct(metaclass=StructMeta):
    """A group of fields. Fields left out of the constructor take their defaults."""

    FIELDS: ClassVar[tuple[Field, ...]]

    def __init__(self, **values: object) -> None:
        cls = type(self)
        cls.__init__ = compiler.compile_init(cls)  # type: ignore[method-assign]
        cls.__init__(self, **values)

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in self.FIELDS)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in self.FIELDS)
        return f"{type(self).__qualname__}({shown})"


class Message(Struct):
    """A struct that stands on its own on the wire or in a log, in several versions."""

    VERSIONS: ClassVar[Versions] = NO_VERSIONS
    FLEXIBLE: ClassVar[Versions] = NO_VERSIONS
    _decoders: ClassVar[dict[int, compiler.Decoder]]
    _step_decoders: ClassVar[dict[int, compiler.StepDecoder]]
    _encoders: ClassVar[dict[int, compiler.Encoder]]
    _step_encoders: ClassVar[dict[int, compiler.StepEncoder]]

    def __init_subclass__(cls, *, versions: str = "none", flexible: str = "none") -> None:
        super().__init_subclass__()
        cls.VERSIONS = Versions.parse(versions)
        cls.FLEXIBLE = Versions.parse(flexible)
        cls._decoders = {}
        cls._step_decoders = {}
        cls._encoders = {}
        cls._step_encoders = {}

    @classmethod
    def decode(cls, version: int, buffer: Buffer, position: int = 0) -> Self:
        """Read one message that fills `buffer` from `position` to its end.

        Records are slices of `buffer`; everything else is copied. Raises DecodeError, also on
        trailing bytes, and ValueError for a version that the message does not have.
        """
        decoder = cls._decoders.get(version) or cls._compile_decoder(version)
        try:
            message, end = decoder(buffer, position, len(buffer))
        except UNDECODABLE as error:
            raise cls.refusal(version, error) from error
        if end != len(buffer):
            raise DecodeError(f"{cls.__name__} v{version}: {len(buffer) - end} bytes left over")
        decoded: Self = message
        return decoded

    @classmethod
    def decode_from(cls, version: int, buffer: Buffer, position: int) -> tuple[Self, int]:
        """Like `decode`, for a message that something follows; returns the position after it."""
        decoder = cls._decoders.get(version) or cls._compile_decoder(version)
        try:
            return decoder(buffer, position, len(buffer))
        except UNDECODABLE as error:
            raise cls.refusal(version, error) from error

    @classmethod
    def decoder(cls, version: int) -> compiler.Decoder:
        """The function behind `decode_from`. What it raises is in UNDECODABLE; see `refusal`."""
        return cls._decoders.get(version) or cls._compile_decoder(version)

    @classmethod
    def step_decoder(cls, version: int) -> compiler.StepDecoder:
        """As `decoder`, in steps: a generator of the number of elements announced so far.

        For messages so long that others must be served meanwhile. It returns the same as `decoder`.
        """
        decoder = cls._step_decoders.get(version)
        if decoder is None:
            decoder = cls._step_decoders[version] = compiler.compile_step_decoder(cls, version)
        return decoder

    @classmethod
    def encoder(cls, version: int) -> compiler.Encoder:
        """The function behind `encode_parts`."""
        return cls._encoders.get(version) or cls._compile_encoder(version)

    @classmethod
    def _compile_decoder(cls, version: int) -> compiler.Decoder:
        decoder = cls._decoders[version] = compiler.compile_decoder(cls, version)
        return decoder

    @classmethod
    def refusal(cls, version: int, error: Exception) -> DecodeError:
        """Return the error to report for bytes with which a decoder failed."""
        reason = str(error) if isinstance(error, DecodeError) else "ends too early"
        return DecodeError(f"{cls.__name__} v{version}: {reason}")

    def encode(self, version: int) -> bytes:
        """The message's bytes. Fields that `version` does not have are left out silently.

        Records must be buffers here, not regions of files.
        """
        parts: list[Any] = []
        (self._encoders.get(version) or self._compile_encoder(version))(self, parts)
        return b"".join(parts)

    def encode_parts(self, version: int) -> list[Part]:
        """The message as few buffers, with records standing uncopied where records go."""
        parts: list[Part] = []
        (self._encoders.get(version) or self._compile_encoder(version))(self, parts)
        return parts

    def encode_in_steps(self, version: int, parts: list[Part]) -> Iterator[None]:
        """As `encode_parts`, into many `parts`, pausing behind each struct of an array.

        For messages so long that others must be served meanwhile. Complete when it has ended.
        """
        encoder = self._step_encoders.get(version)
        if encoder is None:
            encoder = compiler.compile_step_encoder(type(self), version)
            self._step_encoders[version] = encoder
        return encoder(self, parts)

    @classmethod
    def _compile_encoder(cls, version: int) -> compiler.Encoder:
        encoder = cls._encoders[version] = compiler.compile_encoder(cls, version)
        return encoder


class Request(Message):
    """A message that a client or broker sends. `RESPONSE` is the class of the answer."""

    API_KEY: ClassVar[ApiKey]
    RESPONSE: ClassVar[type[Response]]

    def __init_subclass__(
        cls, *, versions: str = "none", flexible: str = "none", key: ApiKey | None = None
    ) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        assert key is not None
        cls.API_KEY = key


class Response(Message):
    """The answer to a request of the same API key."""

    API_KEY: ClassVar[ApiKey]

    def __init_subclass__(
        cls,
        *,
        versions: str = "none",
        flexible: str = "none",
        request: type[Request] | None = None,
    ) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        assert request is not None
        cls.API_KEY = request.API_KEY
        request.RESPONSE = cls


class Coded(Message):
    """A key or value of an internal topic's record: an int16 in front gives its type or version."""

    KEY_TYPE: ClassVar[int] = -1
    """For keys: the int16 in front, the type of the record; -1 for values."""

    def __init_subclass__(
        cls, *, versions: str = "none", flexible: str = "none", key_type: int = -1
    ) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        cls.KEY_TYPE = key_type

    def encode_versioned(self, version: int = 0) -> bytes:
        """The int16 in front (a value's version, a key's type), and the body in `version`."""
        prefix = version if self.KEY_TYPE < 0 else self.KEY_TYPE
        return prefix.to_bytes(PREFIX_BYTES, "big", signed=True) + self.encode(version)

    @classmethod
    def decode_versioned(cls, buffer: Buffer) -> tuple[int, Self]:
        """Inverse of `encode_versioned`; returns the int16 in front and the body.

        Raises DecodeError for a version or type that this class does not have.
        """
        if len(buffer) < PREFIX_BYTES:
            raise DecodeError(f"{cls.__name__}: {len(buffer)} bytes hold no version")
        prefix = int.from_bytes(buffer[:PREFIX_BYTES], "big", signed=True)
        is_key = cls.KEY_TYPE >= 0
        if prefix != cls.KEY_TYPE if is_key else prefix not in cls.VERSIONS:
            raise DecodeError(f"{cls.__name__}: unknown {'type' if is_key else 'version'} {prefix}")
        return prefix, cls.decode(0 if is_key else prefix, buffer, PREFIX_BYTES)


class MetadataRecord(Message):
    """A record of `__cluster_metadata`; `protocol.metadata_log.frames` frames it."""

    RECORD_TYPE: ClassVar[int]

    def __init_subclass__(
        cls, *, versions: str = "none", flexible: str = "none", record_type: int = -1
    ) -> None:
        super().__init_subclass__(versions=versions, flexible=flexible)
        cls.RECORD_TYPE = record_type
