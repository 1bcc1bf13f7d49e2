"""The file of boosted trees: its checksum, what it says without a chip, and one forest in another's place."""
import json
import struct


def checksum(data):
    """FNV-1a over words of eight bytes, the last filled up with zeros."""
    value = 0xCBF29CE484222325
    for (word,) in struct.iter_unpack("<Q", data + bytes(-len(data) % 8)):
        value = ((value ^ word) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


def write_body(path, header, forests):
    with open(path, "wb") as out:
        out.write(f"stoker-residual 2 {checksum(header + forests):016x} {len(header)}\n".encode() + header + forests)


def read_body(path):
    """(header, bytes of all forests)"""
    with open(path, "rb") as file:
        line, rest = file.read().split(b"\n", 1)
    length = int(line.split()[3])
    return json.loads(rest[:length]), rest[length:]


def drop_chip(path, chip):
    """Writes the file of trees anew so that none of them speaks for `chip`."""
    header, forests = read_body(path)
    for entry in header["forests"]:
        entry["chips"] = [c for c in entry["chips"] if c != chip] or [""]
    write_body(path, json.dumps(header).encode() + b"\n", forests)


def replace_forest(path, forest):
    """Writes the file anew with a forest in place of that of its family and chips, or after all others."""
    header, data = read_body(path)
    kept, start = [], 0
    for entry in header["forests"]:
        length = 4 * entry["trees"] + 8 * entry["nodes"]
        kept.append((entry, data[start:start + length]))
        start += length
    place = next((i for i, (entry, _) in enumerate(kept)
                  if all(entry[x] == forest[0][x] for x in ("family", "chips", "fold"))), len(kept))
    kept[place:place + 1] = [forest]
    header["forests"] = [entry for entry, _ in kept]
    write_body(path, json.dumps(header).encode() + b"\n", b"".join(part for _, part in kept))
