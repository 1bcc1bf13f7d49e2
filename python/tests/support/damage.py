"""Damaged copies of a file, the same ones each time: bytes cut and flipped, and values of text put in place of others."""

import random
import re

# Values that readers meet where they expect another: too large, no number, of another type, deep, escape sequences.
VALUES = [b"1e999", b"-1", b"9223372036854775808", b"1e308", b"NaN", b"nan", b"inf", b"-Infinity", b"null", b"true", b"[]", b"{}",
          b'""', b'"\\u001b[31mred\\u202e"', b'"\x1b]0;t\x07\xc2\x9b"', b'"\xff\xfe"', b'"\\ud800"', b"0", b"-0.0", b"4294967296",
          b"[" * 400 + b"]" * 400, b'{"a":' * 400 + b"1" + b"}" * 400, b"0x10", b"1.5", b'"' + b"x" * 5000 + b'"', b"\x00"]
TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.)*"|-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?|true|false|null|\b[A-Za-z_]\w*\b')


def _cut(rng, data):
    return data[:rng.randrange(len(data) + 1)]


def _flipped(rng, data):
    out = bytearray(data)
    for _ in range(rng.choice((1, 1, 2, 8))):
        if out:
            out[rng.randrange(len(out))] = rng.randrange(256)
    return bytes(out)


def _without_part(rng, data):
    first = rng.randrange(len(data) + 1)
    return data[:first] + data[first + rng.randrange(1, 64):]


def _repeated(rng, data):
    first = rng.randrange(len(data) + 1)
    return data[:first] + data[first:first + rng.randrange(1, 200)] * rng.choice((2, 3, 50)) + data[first:]


def _other_value(rng, data):
    places = list(TOKEN.finditer(data))
    for place in sorted(rng.sample(places, min(len(places), rng.choice((1, 1, 1, 3)))), key=lambda p: -p.start()):
        data = data[:place.start()] + rng.choice(VALUES) + data[place.end():]
    return data


def _line_again(rng, data):
    """Duplicate keys and rows."""
    lines = data.split(b"\n")
    lines.insert(rng.randrange(len(lines) + 1), rng.choice(lines))
    return b"\n".join(lines)


TEXT = [_other_value] * 5 + [_cut, _flipped, _without_part, _repeated, _line_again]
BINARY = [_flipped] * 3 + [_cut, _without_part, _repeated]


def damaged(data: bytes, count: int, seed: int = 1, ways=None):
    """`count` damaged copies of `data`."""
    rng = random.Random(seed)
    binary = b"\x00" in data[:4096]
    for _ in range(count):
        yield rng.choice(ways or (BINARY if binary else TEXT))(rng, data)
