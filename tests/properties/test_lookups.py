"""What is looked up or counted, against the files themselves: the catalogue, vocabularies, this machine."""

from __future__ import annotations

import collections
import csv
import gzip
import os
import pathlib
import re
import unittest

from cases import Properties
from command import BAD, GOOD, NO, REPOSITORY, near


class Catalogue(Properties):
    def setUp(self) -> None:
        super().setUp()
        with open(REPOSITORY / "data" / "gpus" / "gpus.csv", encoding="utf-8") as file:
            self.rows = list(csv.DictReader(line for line in file if not line.startswith("#")))
        self.gpus = self.good("gpus", "--json").json["gpus"]

    def test_every_gpu_is_told_as_its_row_has_it(self):
        self.assertEqual([gpu["name"] for gpu in self.gpus], [row["gpu"] for row in self.rows])
        scale = {"memory_bytes": ("mem_gib", 2**30), "usable_bytes": ("usable_mib", 2**20), "bandwidth_bytes_per_s": ("bw_gbs", 1e9),
                 "fp32_flops": ("fp32_tflops", 1e12), "tf32_tensor_flops": ("tf32_tensor_tflops", 1e12),
                 "fp16_tensor_flops": ("fp16_tensor_tflops", 1e12), "bf16_tensor_flops": ("bf16_tensor_tflops", 1e12),
                 "sm_count": ("sm_count", 1), "tdp_watts": ("tdp_w", 1)}
        for gpu, row in zip(self.gpus, self.rows):
            for key, (column, unit) in scale.items():
                expected = float(row[column] or 0) * unit
                if key == "usable_bytes" and not row[column]:
                    continue  # an estimate
                self.expect(near(gpu[key], expected), f"{gpu['name']}: {key} is {gpu[key]}, the file has {expected}")

    def test_a_name_means_one_gpu_and_every_name_leads_to_it(self):
        names = collections.Counter(name.lower() for gpu in self.gpus for name in {gpu["name"].lower(), *gpu["aliases"]})
        self.expect(not [name for name, count in names.items() if count > 1], f"{names.most_common(3)}")
        known = [gpu for gpu in self.gpus if gpu["memory_bytes"]]
        asked = [(gpu, name) for gpu in known for name in [gpu["name"], *gpu["aliases"]]]
        answers = self.stoker.each(["predict", "cnn_mnist", "--gpu", name, "--host", "cores=4,ram=16G", "--json"] for _, name in asked)
        for (gpu, name), done in zip(asked, answers):
            self.expect(done.code in (GOOD, NO) and done.json["gpu"] == gpu["name"], f"{name} is not {gpu['name']}", done)

    def test_models_are_those_of_the_zoo(self):
        files = {path.name.split(".")[0] for path in (REPOSITORY / "data" / "zoo").glob("*.step.gz")}
        models = self.good("models", "--json").json["models"]
        self.assertEqual({model["name"] for model in models}, files)

    def test_work_of_operators_adds_up_to_the_models(self):
        models = {model["name"]: model for model in self.good("models", "--json").json["models"]}
        for name in ("resnet50", "gpt2", "cnn_mnist", "t5_small"):
            told = self.good("models", name, "--batch", 1, "--json").json
            flops = sum(row["flops"] for row in told["operators"])
            whole = models[name]["forward_flops_per_sample"] + models[name]["backward_flops_per_sample"]
            self.expect(flops >= whole * (1 - 1e-9), f"{name}: operators have {flops} FLOPs, the model {whole}")


class Vocabularies(Properties):
    def setUp(self) -> None:
        super().setUp()
        words = ["the", "of", "gradient", "Step", "step", "batch", "x1", "Zürich", "wörter", "naïve", "GPU", "gpu", "a"]
        self.lines = [" ".join(self.chance.choices(words + [f"w{n}" for n in range(self.chance.randint(1, 80))],
                                                   k=self.chance.randint(1, 30))) for _ in range(200)]
        self.text = self.stoker.file("text.txt", "\n".join(self.lines) + "\n")

    def told(self, *more):
        return self.good("vocab", self.text, "--json", *more).json

    def test_words_and_lines_are_counted(self):
        told = self.told("--case")
        words = [word for line in self.lines for word in line.split()]
        self.assertEqual((told["lines"], told["words"], told["distinct"]), (len(self.lines), len(words), len(set(words))))

    def test_what_a_vocabulary_covers(self):
        counts = collections.Counter(word for line in self.lines for word in line.split())
        total = sum(counts.values())
        for row in self.told("--case", "--least", "1,2,3,7,40")["by_least_count"]:
            kept = [count for count in counts.values() if count >= row["least"]]
            self.expect(row["size"] == len(kept) + 2 and near(row["covered"], sum(kept) / total), f"{row}, Python has {len(kept)}")

    def test_what_the_most_frequent_words_take(self):
        counts = collections.Counter(word for line in self.lines for word in line.split())
        for row in self.told("--case", "--drop", "1,5,20")["without_most_frequent"]:
            lost = sum(count for _, count in counts.most_common(row["dropped"])) / sum(counts.values())
            self.expect(near(row["words_lost"], lost), f"{row}, Python has {lost}")

    def test_what_a_length_cuts_off_and_pads(self):
        lengths = [len(line.split()) for line in self.lines]
        for row in self.told("--case", "--length", "3,10,25,40")["by_length"]:
            kept = [min(length, row["length"]) for length in lengths]
            cut = sum(length > row["length"] for length in lengths) / len(lengths)
            lost = 1 - sum(kept) / sum(lengths)
            fixed = 1 - sum(kept) / (row["length"] * len(lengths))
            self.expect(near(row["lines_cut"], cut) and near(row["tokens_cut"], lost), f"{row}, Python has {cut}, {lost}")
            self.expect(near(row["padding"]["fixed"], fixed), f"{row}, Python has {fixed}")
            pads = row["padding"]
            ordered = pads["sorted"] <= pads["buckets"] + 1e-9 <= pads["random"] + 2e-2 and pads["random"] <= pads["fixed"] + 1e-9
            self.expect(ordered, f"{row}")

    def test_gzip_and_case(self):
        packed = self.stoker.folder / "text.txt.gz"
        packed.write_bytes(gzip.compress("\n".join(self.lines).encode()))
        self.assertEqual(self.good("vocab", packed, "--json").json, self.told())
        lower = {word.lower() for line in self.lines for word in line.split() if word.isascii()}
        ascii_only = self.stoker.file("ascii.txt", "\n".join(" ".join(w for w in line.split() if w.isascii()) for line in self.lines))
        self.assertEqual(self.good("vocab", ascii_only, "--json").json["distinct"], len(lower))


class Machine(Properties):
    def test_this_machine_is_as_python_sees_it(self):
        told = self.good("machine", "--json").json
        self.assertEqual(told["affinity_cores"], len(os.sched_getaffinity(0)))
        self.assertEqual(told["logical_cores"], os.cpu_count())
        total = int(re.search(r"MemTotal:\s+(\d+) kB", pathlib.Path("/proc/meminfo").read_text()).group(1)) * 1024
        self.assertEqual(told["memory_total_bytes"], total)
        self.assertLessEqual(told["memory_bytes"], total)
        self.assertLessEqual(told["cores"], told["affinity_cores"])
        self.assertEqual(told["kernel"], os.uname().release)
        shm = os.statvfs("/dev/shm")
        self.assertEqual(told["shared_memory_bytes"], shm.f_blocks * shm.f_frsize)

    def test_damaged_files_are_refused_by_every_verb_that_reads_one(self):
        damaged = self.stoker.file("damaged.json", '{"format": "stoker-nothing", "schema_version": [')
        for words in (["predict", damaged, "--gpu", "t4"], ["predict", "resnet18", "--gpu", "t4", "--data", damaged], ["explain", damaged],
                      ["calibrate", damaged], ["validate", damaged], ["probe", damaged], ["study", damaged], ["fit", damaged],
                      ["predict", "resnet18", "--gpu", "t4", "--coefficients", damaged], ["predict", "resnet18", "--gpu", damaged],
                      ["vocab", str(self.stoker.folder / "none.txt")], ["plan", "--from", damaged], ["sweep", damaged], ["tune", damaged]):
            done = self.stoker(*words)
            self.expect(done.code in (BAD, 2) and not done.out and done.error.startswith("stoker"), "is not refused in a sentence", done)


if __name__ == "__main__":
    unittest.main()
