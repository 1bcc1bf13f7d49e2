"""A reader of recordings made from docs/reference/recording.md alone: what `stoker watch -o` writes is what the page says."""

import json
import os
import re
import struct
import subprocess
import sys
import zlib

import pytest

from places import REPOSITORY

BINARY = os.environ.get("STOKER_BINARY")

pytestmark = pytest.mark.skipif(not BINARY, reason="STOKER_BINARY names no binary")

MARK = b"STOKER-RECORDING-1\n"
BUSY = "import time\nend = time.monotonic() + 3\nwhile time.monotonic() < end: sum(range(10000))\n"


def blocks(recording):
    """[(kind, content)] of the bytes of a recording that is whole."""
    assert recording.startswith(MARK)
    at, found = len(MARK), []
    while at < len(recording):
        mark, kind, length, stored, crc = struct.unpack_from("<4scIII", recording, at)
        assert mark == b"\xf1\x53\x4b\x42"
        content = recording[at + 17:at + 17 + stored]
        assert len(content) == stored
        assert zlib.crc32(recording[at:at + 13] + content) == crc
        found.append((kind.decode(), zlib.decompress(content)))
        assert len(found[-1][1]) == length
        at += 17 + stored
    return found


class Numbers:
    """LEB128 numbers off the front of bytes; those with a sign are folded."""

    def __init__(self, content):
        self.content, self.at = content, 0

    def take(self):
        value = shift = 0
        while True:
            byte = self.content[self.at]
            self.at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def signed(self):
        folded = self.take()
        return (folded >> 1) ^ -(folded & 1)


def grown(numbers, base, count):
    """`count` numbers as differences to those of the sample before."""
    for i in range(count):
        base[i] = base.get(i, 0) + numbers.signed()
    return dict(base)


def samples(content):
    """[{at, processes: {serial: {alive, fields, looks}}, host}] of a block of samples."""
    numbers = Numbers(content)
    process_fields, host_fields, gpu_fields, kinds, count = (numbers.take() for _ in range(5))
    found, at, known, host, gpus = [], 0, {}, {}, {}
    for _ in range(count):
        at += numbers.signed()
        sample = {"at": at, "processes": {}, "host": None}
        for _ in range(numbers.take()):
            serial, alive = numbers.take(), numbers.take()
            fields, looks, pin = known.setdefault(serial, ({}, {}, {}))
            sample["processes"][serial] = {"alive": alive, "fields": grown(numbers, fields, process_fields),
                                           "looks": grown(numbers, looks, kinds), "pin": grown(numbers, pin, kinds)}
        if numbers.take():
            sample["host"] = grown(numbers, host, host_fields)
        for gpu in range(numbers.take()):
            grown(numbers, gpus.setdefault(gpu, {}), gpu_fields)
        found.append(sample)
    assert numbers.at == len(content), "bytes are left over"
    return found


def names_of(function):
    """The fields that src/observe/record/fields.h visits in one function, in their order."""
    text = (REPOSITORY / "src" / "observe" / "record" / "fields.h").read_text(encoding="utf-8")
    body = text[text.index(f"void {function}("):]
    return re.findall(r"visit\(\w\.([\w.\[\]]+)\)", body[:body.index("\n}\n")])


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    path = tmp_path_factory.mktemp("recording") / "run.rec"
    done = subprocess.run([BINARY, "watch", "--json", "--every", "1", "-o", str(path), "--", sys.executable, "-c", BUSY],
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return path, json.loads(done.stdout.splitlines()[-1])


def test_blocks_are_framed_as_the_page_says(recorded):
    found = blocks(recorded[0].read_bytes())
    assert [kind for kind, _ in found][0] == "F"
    assert [kind for kind, _ in found][-1] == "E"
    facts = json.loads(found[0][1])
    assert {"unix_ns", "sample_ns", "cores", "processors", "quota", "memory", "processor", "kernel", "gpus", "hidden",
            "started_here"} <= set(facts)
    assert facts["started_here"]
    processes = [process for kind, content in found if kind == "P" for process in json.loads(content)]
    assert any("range(10000)" in process["command"] for process in processes)
    assert {process["role"] for process in processes} <= {"training", "worker", "launcher", "helper"}


def test_samples_are_differences_of_counters_that_only_grow(recorded):
    found = blocks(recorded[0].read_bytes())
    facts = json.loads(found[0][1])
    job = {process["serial"] for kind, content in found if kind == "P" for process in json.loads(content)
           if "range(10000)" in process["command"]}
    names = names_of("each_field")
    cpu, resident = names.index("leader.cpu_ns"), names.index("resident")
    every = [sample for kind, content in found if kind == "S" for sample in samples(content)]
    assert len(every) >= 5
    assert all(a["at"] < b["at"] for a, b in zip(every, every[1:]))
    assert any(sample["host"] for sample in every)
    assert len(next(sample["host"] for sample in every if sample["host"])) == len(names_of("each_host_field"))
    rows = [process for sample in every for serial, process in sample["processes"].items() if serial in job]
    assert all(len(row["fields"]) == len(names) for row in rows)
    times = [row["fields"][cpu] for row in rows if row["alive"]]
    assert times == sorted(times)
    assert 0 < times[-1] <= every[-1]["at"] + 10 * facts["sample_ns"], "one thread has at most the time that passed"
    assert max(row["fields"][resident] for row in rows) > 1 << 20
    looks = [sum(row["looks"].values()) for row in rows]
    assert looks == sorted(looks), "looks are counted since the watch began"


def test_a_recording_that_is_cut_is_told_up_to_its_last_whole_block(recorded, tmp_path):
    path, report = recorded
    content = path.read_bytes()
    whole = blocks(content)
    assert whole[-1][0] == "E"
    cut = tmp_path / "cut.rec"
    cut.write_bytes(content[:-3])
    told = subprocess.run([BINARY, "explain", "--json", str(cut)], capture_output=True, text=True, check=False, timeout=60)
    assert told.returncode == 0, told.stderr
    again = json.loads(told.stdout)
    assert again["seconds"] == pytest.approx(report["seconds"], abs=1.5)
