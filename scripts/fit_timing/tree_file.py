"""The file of boosted trees: its checksum, and what it says without a chip."""
import json
import struct


def checksum(data):
    """FNV-1a over words of eight bytes, the last filled up with zeros."""
    value = 0xCBF29CE484222325
    for (word,) in struct.iter_unpack("<Q", data + bytes(-len(data) % 8)):
        value = ((value ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def drop_chip(path, chip):
    """Writes the file of trees anew so that none of them speaks for `chip`."""
    with open(path, "rb") as file:
        line, rest = file.read().split(b"\n", 1)
    length = int(line.split()[3])
    header = json.loads(rest[:length])
    for entry in header["forests"]:
        entry["chips"] = [c for c in entry["chips"] if c != chip] or [""]
    body = json.dumps(header).encode() + b"\n"
    with open(path, "wb") as out:
        out.write(f"stoker-residual 2 {checksum(body + rest[length:]):016x} {len(body)}\n".encode() + body + rest[length:])
