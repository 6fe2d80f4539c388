"""Fields of the structs of dcs.h, as annotations of dataclasses: from one list of fields, that of the dataclass, come the
ctypes structure, how a value gets into it and how it comes out."""
from __future__ import annotations

import ctypes
import operator
import os
from ctypes import POINTER, c_char_p, c_double, c_int, c_int64, c_size_t, c_uint, c_uint64, c_void_p
from typing import Annotated, Any, Callable, Dict, List, Mapping, Optional, Sequence, Tuple, TypeVar, Union, get_type_hints

Path = Union[str, bytes, "os.PathLike[str]"]
CFields = List[Tuple[str, Any]]
STRUCTURES: Dict[str, Any] = {}  # by their name in dcs.h
Kind = TypeVar("Kind")


def text(value: Optional[bytes]) -> str:
    return (value or b"").decode("utf-8", "surrogateescape")


def printable(words: str) -> str:
    """For people: words of hosts and of other users, in which nothing drives a terminal or turns the direction of writing."""
    return "".join(c if c.isprintable() or c == "\n" else "?" for c in words)


def c_bytes(value: Any, what: str) -> bytes:
    """A C string; str as the file system's encoding has it."""
    encoded = os.fsencode(value)
    if b"\0" in encoded:
        raise ValueError(f"{what} has a NUL byte in it: {value!r}")
    return encoded


def c_bytes_or_none(value: Any, what: str) -> Optional[bytes]:
    return None if value is None else c_bytes(value, what)


def strings(values: Sequence[Any], what: str) -> Any:
    return (c_char_p * (len(values) + 1))(*[c_bytes(value, what) for value in values], None)


class Field:
    """A field of C under the same name. put() returns what must live as long as the structure."""
    kind: Any = c_int

    def c_fields(self, name: str) -> CFields:
        return [(name, self.kind)]

    def get(self, row: Any, name: str) -> Any:
        return getattr(row, name)

    def put(self, to: Any, name: str, value: Any) -> Any:
        setattr(to, name, value)


class Number(Field):
    def __init__(self, kind: Any):
        self.kind = kind

    def put(self, to: Any, name: str, value: Any) -> Any:
        setattr(to, name, number(name, value, self.kind))


class CString(Field):
    kind = c_char_p

    def get(self, row: Any, name: str) -> Any:
        return text(getattr(row, name))

    def put(self, to: Any, name: str, value: Any) -> Any:
        setattr(to, name, c_bytes_or_none(value, name))


class CStrings(Field):
    """Ends in NULL. `c_name`: its name in C, if it is another one."""

    def __init__(self, c_name: str = "", encode: Callable[[Any], Sequence[Any]] = list):
        self.c_name, self.encode = c_name, encode

    def c_fields(self, name: str) -> CFields:
        return [(self.c_name or name, POINTER(c_char_p))]

    def get(self, row: Any, name: str) -> Any:
        found: List[str] = []
        values = getattr(row, self.c_name or name)
        while values and values[len(found)] is not None:
            found.append(text(values[len(found)]))
        return tuple(found)

    def put(self, to: Any, name: str, value: Any) -> Any:
        if isinstance(value, (str, bytes)):
            raise TypeError(f"{name} is a list of strings, not one: {value!r}")
        setattr(to, self.c_name or name, strings(self.encode(value), name) if value or self.c_name else None)


class Many(Field):
    """A pointer to several, and before it, or behind it, how many. `of`: strings, or a dataclass with a structure."""

    def __init__(self, count: str, of: Any = None, encode: Optional[Callable[[Any], Any]] = None):
        self.count, self.of, self.encode = count, of, encode

    def c_fields(self, name: str) -> CFields:
        item = c_char_p if self.of is None else self.of.C
        pair: CFields = [(self.count, c_size_t), (name, POINTER(item))]
        return pair[::-1] if self.encode else pair

    def get(self, row: Any, name: str) -> Any:
        values, count = getattr(row, name), getattr(row, self.count)
        return tuple(text(values[i]) if self.of is None else read(self.of, values[i]) for i in range(count)) if values else ()

    def put(self, to: Any, name: str, value: Any) -> Any:
        assert self.encode is not None
        rows = self.encode(value)
        setattr(to, name, rows)
        setattr(to, self.count, len(rows))
        return rows


class Bytes(Field):
    """A pointer to any bytes, and their number in NAME_length. str goes as UTF-8."""

    def c_fields(self, name: str) -> CFields:
        return [(name, c_char_p), (name + "_length", c_size_t)]

    def put(self, to: Any, name: str, value: Any) -> Any:
        if not isinstance(value, (str, bytes, bytearray, memoryview)):
            raise TypeError(f"{name} takes str or bytes, not {type(value).__name__}")
        data = value.encode() if isinstance(value, str) else bytes(value)
        setattr(to, name, data)
        setattr(to, name + "_length", len(data))
        return data


def number(name: str, value: int, kind: Any = c_int) -> int:
    try:
        operator.index(value)
    except TypeError:
        raise TypeError(f"{name} takes a whole number, not {type(value).__name__}") from None
    low, high = (0, 2**32) if kind is c_uint else (-2**31, 2**31)
    if not low <= value < high:
        raise ValueError(f"{name} is {value}: it does not fit into 32 bits")
    return value


def as_environment(value: Union[Mapping[str, str], Sequence[str]]) -> List[str]:
    if not isinstance(value, Mapping):
        return list(value)
    for name in value:
        if not name or "=" in name:
            raise ValueError(f"env has a variable {name!r}: a name is not empty and has no = in it")
    return [f"{k}={v}" for k, v in value.items()]


Int = Annotated[int, Number(c_int)]
Unsigned = Annotated[int, Number(c_uint)]
Flag = Annotated[bool, Number(c_int)]
Int64 = Annotated[int, Number(c_int64)]
Unsigned64 = Annotated[int, Number(c_uint64)]
Double = Annotated[float, Number(c_double)]
Text = Annotated[str, CString()]
Words = Annotated[Tuple[str, ...], CStrings()]


def fields_of(kind: Any) -> List[Tuple[str, Field]]:
    """Those that C has, in its order."""
    hints = get_type_hints(kind, include_extras=True)
    return [(name, how) for name, hint in hints.items() for how in getattr(hint, "__metadata__", ()) if isinstance(how, Field)]


def c_fields_of(kind: Any) -> CFields:
    return [c_field for name, how in fields_of(kind) for c_field in how.c_fields(name)]


def structure(c_name: str, *first: Tuple[str, Any]) -> Callable[[Kind], Kind]:
    """Gives a dataclass its structure, as `kind.C`. `first`: what precedes its fields in C, besides struct_size."""
    def decorate(kind: Kind) -> Kind:
        c_fields = [("struct_size", c_size_t), *first, *c_fields_of(kind)]
        kind.__init__.__annotations__.clear()  # help() shows the signature
        kind.C = STRUCTURES[c_name] = type(c_name, (ctypes.Structure,), {"_fields_": c_fields})  # type: ignore[attr-defined]
        return kind
    return decorate


def read(kind: Any, row: Any) -> Any:
    """The dataclass, with everything copied out of a structure of the library."""
    return kind(**{name: how.get(row, name) for name, how in fields_of(kind)})


OF_LIBRARY = ("of_library", c_void_p)
