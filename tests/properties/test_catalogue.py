"""The catalogue's GPUs beside each other: what has more of everything is never slower, and batches have no cliffs."""

from __future__ import annotations

import csv
import itertools
import unittest

import draw
from cases import Properties
from command import GOOD, HOST, NO, REPOSITORY

# One processor for all, so that GPUs are compared and not the hosts that they usually have.
SAME_HOST = f"{HOST},cpu=EPYC 9654"
RATES = ("sm_count", "fp32_tflops", "fp16_tflops", "tf32_tensor_tflops", "fp16_tensor_tflops", "bf16_tensor_tflops", "bw_gbs", "l2_mib")
JOBS = (("resnet50", "fp32", 32), ("resnet50", "amp-fp16", 64), ("bert_base", "fp32", 8), ("bert_base", "amp-fp16", 16))
# Tiles of products fill the last wave of one chip better than that of another of nearly the same size.
WAVES = 1.02
NEIGHBOURS = (*range(8, 25), 63, 64, 65, 127, 128, 129)
# Per sample, from one batch to the next: convolutions have thousands of tiles; the products of a language model go from four
# waves to five with one more sample, which is 25 % of them.
CLIFFS = {"resnet50": 1.1, "efficientnet_b0": 1.1, "bert_base": 1.25}
FALL = 0.97  # a larger batch that takes less time: learned times have steps
LEAVES_CACHE = 0.95  # a batch whose tensors the L2 no longer holds
SATURATING = (1, 2, 4, 8, 16, 32, 64, 128)


def figure(row: dict, name: str) -> float:
    return float(row[name] or 0)


def has_no_less(one: dict, other: dict) -> bool:
    """Of the same kind, no older, and no less of anything; a power limit that is not known may be any."""
    return (
        one["vendor"] == other["vendor"]
        and one["fp32_cores_per_sm"] == other["fp32_cores_per_sm"]
        and figure(one, "compute_capability") >= figure(other, "compute_capability")
        and bool(one["tdp_w"])
        and bool(other["tdp_w"])
        and figure(one, "tdp_w") >= figure(other, "tdp_w")
        and all(figure(one, name) >= figure(other, name) for name in RATES)
    )


class Catalogue(Properties):
    def rows(self) -> list:
        with open(REPOSITORY / "data" / "gpus" / "gpus.csv", newline="") as file:
            return [row for row in csv.DictReader(file) if row["vendor"] == "NVIDIA" and row["fp32_tflops"]]

    def test_what_has_more_of_everything_is_never_slower(self):
        rows, pairs = self.rows(), 0
        for model, precision, batch in JOBS:
            given = {"precision": precision, "batch": batch}
            answers = self.stoker.each(draw.predict(model, row["gpu"], given, host=SAME_HOST) for row in rows)
            found = [(row, answer) for row, answer in zip(rows, answers) if answer.code in (GOOD, NO)]
            self.assertGreater(len(found), len(rows) - 5)
            for (better, one), (worse, other) in itertools.permutations(found, 2):
                if not has_no_less(better, worse):
                    continue
                pairs += 1
                a, b = (answer.json["time"]["step_ms"]["value"] for answer in (one, other))
                self.expect(a <= b * WAVES, f"{better['gpu']} takes {a} ms, {worse['gpu']} {b}", one, other)
        self.assertGreater(pairs, 1000)

    def tables(self, gpus: tuple, batches: tuple):
        """(model, answer, step time by batch) over models, GPUs and precisions."""
        cases = list(itertools.product(CLIFFS, gpus, ("fp32", "amp-fp16")))
        words = [
            draw.predict(model, gpu, {"precision": precision, "batch": ",".join(map(str, batches))}, host=SAME_HOST)
            for model, gpu, precision in cases
        ]
        for (model, _, _), answer in zip(cases, self.stoker.each(words)):
            self.assertIn(answer.code, (GOOD, NO), str(answer))
            yield model, answer, {int(row["batch"]): row["forecast"]["time"]["step_ms"]["value"] for row in answer.json["table"]}

    def test_one_more_sample_is_no_cliff(self):
        for model, answer, times in self.tables(("v100-16gb", "t4", "a100-40gb", "rtx-4090"), NEIGHBOURS):
            for batch in NEIGHBOURS:
                if batch + 1 not in times:
                    continue
                rise = times[batch + 1] / times[batch]
                self.expect(FALL <= rise <= CLIFFS[model] * (batch + 1) / batch, f"from {batch} to {batch + 1}: {rise:.3f}", answer)

    def test_throughput_grows_with_the_batch_until_it_saturates(self):
        for _, answer, times in self.tables(("quadro-rtx-8000", "v100s", "l40s", "h200", "rtx-5090", "mi300x"), SATURATING):
            rates = [batch / times[batch] for batch in SATURATING]
            for batch, rate, more in zip(SATURATING, rates, rates[1:]):
                self.expect(more >= LEAVES_CACHE * rate, f"twice {batch}: {more / rate:.3f} of the throughput", answer)


if __name__ == "__main__":
    unittest.main()
