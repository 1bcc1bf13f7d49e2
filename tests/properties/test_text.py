"""The answer for people says what the answer for machines says, as far as it shows digits."""

from __future__ import annotations

import re
import unittest

import draw
from cases import COUNT, Properties
from command import HOST, at

THREE_DIGITS = 0.0051  # what rounding to three digits may change, relatively
UNITS = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30, "TiB": 2**40, "us": 1e-6, "ms": 1e-3, "s": 1}
NUMBER = r"([\d,]+(?:\.\d+)?(?:e[+-]?\d+)?)"
BAND = rf"{NUMBER} \[{NUMBER}-{NUMBER}\]"


def number(text: str) -> float:
    return float(text.replace(",", ""))


class Texts(Properties):
    def shows(self, text: tuple, figure: dict, scale: float, what: str, *answers, absolute: float = 0.0) -> None:
        """The value with its band, as three texts."""
        for shown, key in zip(text, ("value", "low", "high")):
            exact = figure[key] / scale
            close = abs(number(shown) - exact) <= max(THREE_DIGITS * exact, absolute)
            self.expect(close, f"{what}: {shown} is shown of {exact}", *answers)

    def test_predict_shows_what_its_json_has(self):
        seen = 0
        for job, done in self.answered():
            model, gpu, given = job
            shown = self.stoker(*[word for word in draw.predict(model, gpu, given) if word != "--json"])
            answer, memory = done.json, done.json["memory"]
            self.expect(shown.code == done.code, "another exit code as text", done, shown)
            self.expect(re.search(rf"^{re.escape(memory['verdict'])}\b", shown.out, re.MULTILINE), f"does not say {memory['verdict']}",
                        done, shown)
            if found := re.search(rf"^Memory    device {NUMBER} (GiB|MiB) \[{NUMBER}-{NUMBER}\]", shown.out, re.MULTILINE):
                seen += 1
                value, unit, low, high = found.groups()
                self.shows((value, low, high), memory["device_peak_bytes"], UNITS[unit], "memory of the device", done, shown)
            if found := re.search(rf"^  {BAND} \w+/s", shown.out, re.MULTILINE):
                self.shows(found.groups(), answer["throughput_samples_per_s"], 1, "throughput", done, shown)
            if found := re.search(rf"^Step      {NUMBER} (us|ms|s) \[{NUMBER}-{NUMBER}\]", shown.out, re.MULTILINE):
                value, unit, low, high = found.groups()
                self.shows((value, low, high), answer["time"]["step_ms"], UNITS[unit] * 1e3, "step", done, shown)
            if found := re.search(r"batch up to ([\d,]+) is safe, up to ([\d,]+) may run", shown.out):
                told = (memory["max_batch"]["low"], memory["max_batch"]["value"])
                self.expect(tuple(map(number, found.groups())) == told, f"{found.group(0)}, and {told}", done, shown)
            if found := re.search(r"^GPU       busy (\d+) %", shown.out, re.MULTILINE):
                share = 100 * at(answer, "gpu_utilization")["value"]
                self.expect(abs(int(found.group(1)) - share) <= 0.51, f"busy {found.group(1)} % of {share}", done, shown)
        self.assertGreaterEqual(seen, COUNT // 2)

    def test_a_verdict_says_what_decides_it_where_the_band_does_not(self):
        words = ["predict", "resnet50", "--gpu", "t4", "--precision", "fp32", "--cudnn-benchmark", "--host", HOST, "--batch"]
        largest = self.good(*words, "max", "--json").json["settings"]["batch"]
        shown, done = self.good(*words, largest), self.good(*words, largest, "--json")
        memory = done.json["memory"]
        self.expect(memory["verdict"] == "FITS", "the largest safe batch is not safe", done)
        above = memory["device_peak_bytes"]["high"] > memory["usable_bytes"]
        self.expect(("only where memory is free" in shown.out) == above, "what lies above the memory is not told", done, shown)

    def test_a_plans_table_shows_what_its_json_has(self):
        for model, gpu in (("resnet50", "t4"), ("gpt2", "v100-16gb"), ("cnn_cifar10", "rtx-3090")):
            words = ["plan", model, "--gpu", gpu, "--gpus", "1,2,4", "--host", HOST, "--sample-cost", "3ms", "--samples", 40_000]
            shown, done = self.good(*words), self.good(*words, "--json")
            rows = re.findall(rf"^ +(\d+) +(\d+) +(\d+)(?:/GPU)? +{BAND} ", shown.out, re.MULTILINE)
            told = done.json["plan"]["by_gpus"]
            self.expect(len(rows) == len(told), f"{len(rows)} rows are shown of {len(told)}", shown, done)
            for row, answer in zip(rows, told):
                settings = answer["settings"]
                self.expect(tuple(map(int, row[:3])) == (settings["gpus"], settings["batch"], settings["workers"]), f"{row}", shown, done)
                self.shows(row[3:], answer["throughput_samples_per_s"], 1, f"rate with {row[0]} GPUs", shown, done)


if __name__ == "__main__":
    unittest.main()
