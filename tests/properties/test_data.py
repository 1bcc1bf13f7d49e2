"""Folders of planted data: what `stoker probe` counts is what lies there, whatever lies beside it."""

from __future__ import annotations

import gzip
import io
import pathlib
import struct
import tarfile
import unittest
import zlib

import command
from cases import Properties
from command import GOOD, HOST


def png(width: int, height: int, shade: int) -> bytes:
    """A picture of one colour, by the specification alone."""
    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    rows = b"".join(b"\0" + bytes([shade, 255 - shade, (x * shade) % 256][c] for x in range(width) for c in range(3))
                    for _ in range(height))
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
            + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b""))


class Probes(Properties):
    def folder(self, name: str) -> pathlib.Path:
        folder = self.stoker.folder / name
        folder.mkdir()
        return folder

    def probe(self, path, *more) -> dict:
        done = self.stoker.run("probe", str(path), "--budget", "1s", "--json", *map(str, more))
        self.assertEqual(done.code, GOOD, str(done))
        return done.json

    def counts(self, doc: dict) -> dict:
        return {row["name"]: row["count"] for row in doc["diagnostics"]}

    def test_pictures_are_counted_and_weighed(self):
        folder, sizes = self.folder("pictures"), []
        for number in range(23):
            body = png(self.chance.randint(20, 60), self.chance.randint(20, 60), number * 11)
            (folder / f"class{number % 3}").mkdir(exist_ok=True)
            (folder / f"class{number % 3}" / f"{number}.png").write_bytes(body)
            sizes.append(len(body))
        for name, body in (("notes.txt", b"of no use"), ("empty.png", b""), ("cut.png", png(30, 30, 5)[:60]), ("wrong.jpg", b"GIF89a" * 9)):
            (folder / name).write_bytes(body)
        doc = self.probe(folder)
        self.assertEqual(doc["kind"], "pictures")
        self.assertTrue(len(sizes) <= doc["dataset"]["samples"] <= len(sizes) + 3, doc["dataset"])
        self.assertTrue(sum(sizes) <= doc["dataset"]["total_bytes"] <= sum(sizes) + 200, doc["dataset"])
        self.assertEqual(doc["png_share"] > 0.8, True)
        self.assertTrue(self.counts(doc), "nothing is said of damaged files")
        measured = [row for row in doc["samples"] if row[0] in sizes]
        self.assertEqual(len(measured), len(doc["samples"]), "a sample of another size was measured")
        for row in measured:
            self.assertTrue(20 <= row[1] <= 60 and 20 <= row[2] <= 60, row)

    def test_lines_of_text_are_counted_packed_or_not(self):
        lines = [" ".join(["word"] * self.chance.randint(1, 40)) + "\n" for _ in range(3000)]
        text = "".join(lines).encode()
        plain, packed = self.folder("plain"), self.folder("packed")
        (plain / "a.txt").write_bytes(text)
        (packed / "a.txt.gz").write_bytes(gzip.compress(text))
        for folder, stored in ((plain, len(text)), (packed, len(gzip.compress(text)))):
            doc = self.probe(folder)
            self.assertEqual((doc["kind"], doc["dataset"]["samples"], doc["dataset"]["samples_exact"]), ("text", len(lines), True))
            self.assertTrue(abs(doc["dataset"]["total_bytes"] - stored) <= 64, doc["dataset"])

    def test_records_are_counted_by_their_format(self):
        cifar, idx = self.folder("cifar"), self.folder("idx")
        for part in range(3):
            (cifar / f"data_batch_{part}.bin").write_bytes(b"".join(bytes([n % 10]) + bytes(3072) for n in range(40 + part)))
        (idx / "train-images-idx3-ubyte").write_bytes(struct.pack(">IIII", 0x803, 77, 28, 28) + bytes(77 * 28 * 28))
        self.assertEqual(self.probe(cifar)["dataset"]["samples"], 40 + 41 + 42)
        doc = self.probe(idx)
        self.assertEqual((doc["kind"], doc["dataset"]["samples"]), ("records", 77))
        self.assertTrue(all(row[1:3] == [28, 28] for row in doc["samples"]))

    def test_members_of_shards_are_joined_by_their_keys(self):
        folder = self.folder("shards")
        for shard in range(2):
            packed = io.BytesIO()
            with tarfile.open(fileobj=packed, mode="w") as tar:
                for number in range(15 + shard):
                    for suffix, body in ((".png", png(24, 24, number)), (".cls", b"3")):
                        info = tarfile.TarInfo(f"{shard}-{number:04}{suffix}")
                        info.size = len(body)
                        tar.addfile(info, io.BytesIO(body))
            (folder / f"{shard:06}.tar").write_bytes(packed.getvalue())
        doc = self.probe(folder)
        self.assertEqual((doc["kind"], doc["dataset"]["samples"]), ("tar-shards", 31))

    def test_a_probe_serves_as_the_folder_does(self):
        folder = self.folder("served")
        for number in range(40):
            (folder / f"{number}.png").write_bytes(png(40, 40, number))
        file = self.stoker.folder / "served.json"
        self.probe(folder, "-o", file)
        done = self.stoker("predict", "cnn_cifar10", "--gpu", "t4", "--host", HOST, "--data", file, "--json")
        self.assertEqual(done.code, GOOD, str(done))
        self.assertEqual(done.json["dataset_samples"], 40)
        fixed = self.stoker("predict", "cnn_cifar10", "--gpu", "t4", "--host", HOST, "--data", file, "--samples", 1234, "--json")
        self.assertEqual(fixed.json["dataset_samples"], 1234)
        epochs = [answer.json["epoch_s"]["value"] for answer in (done, fixed)]
        self.assertLess(epochs[0], epochs[1])

    def test_folders_with_nothing_to_read_are_refused(self):
        empty, wrong = self.folder("empty"), self.folder("wrong")
        (wrong / "a.xyz").write_bytes(bytes(range(256)))
        for path in (empty, wrong, self.stoker.folder / "nowhere"):
            done = self.stoker.run("probe", str(path), "--budget", "1s", "--json")
            self.expect(done.code == command.BAD and not done.out and str(path.name) in done.error, "is not refused by name", done)


if __name__ == "__main__":
    unittest.main()
