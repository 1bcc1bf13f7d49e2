"""An answer agrees with itself: figures lie in their bands, parts add up to wholes, the exit code says what the JSON says."""

from __future__ import annotations

import math
import random
import unittest

from cases import COUNT, SEED, Properties
from command import GOOD, HOST, NO, at, differences, is_figure, near, walk
from draw import words_of

SHARES = ("gpu_utilization", "input.worker_utilization", "input.cached_share", "time.uncosted_share")


def value(answer: dict, path: str) -> float:
    return at(answer, path)["value"]


class Answers(Properties):
    drawn: list = []

    def setUp(self) -> None:
        super().setUp()
        if not Answers.drawn:  # once for all tests
            self.chance = random.Random(f"{SEED} answers")
            Answers.drawn = self.answered(2 * COUNT)
        self.answers = Answers.drawn

    def test_figures_are_numbers_within_their_bands(self):
        for _, done in self.answers:
            for path, found in walk(done.json):
                if is_figure(found):
                    numbers = (found["low"], found["value"], found["high"])
                    whole = all(isinstance(x, (int, float)) and math.isfinite(x) and x >= 0 for x in numbers)
                    self.expect(whole and found["low"] <= found["value"] * (1 + 1e-9) and found["value"] <= found["high"] * (1 + 1e-9),
                                f"{path} is {numbers}", done)
                elif isinstance(found, float):
                    self.expect(math.isfinite(found), f"{path} is {found}", done)

    def test_shares_are_between_nought_and_one(self):
        for _, done in self.answers:
            for path in SHARES:
                found = at(done.json, path)
                for share in (found.values() if isinstance(found, dict) else [found]):
                    if isinstance(share, (int, float)):
                        self.expect(0 <= share <= 1 + 1e-9, f"{path} is {share}", done)

    def test_memory_is_the_sum_of_its_parts(self):
        for _, done in self.answers:
            memory = done.json["memory"]
            live = sum(memory["at_peak_bytes"].values())
            peak = memory["allocated_peak_bytes"]["value"]
            self.expect(live == peak, f"parts at the peak are {live}, the peak {peak}", done)
            if done.json["settings"]["threads"] == 0:
                outside = sum(part["bytes"] for part in memory["outside_allocator"])
                reserved, device = memory["reserved_peak_bytes"]["value"], memory["device_peak_bytes"]["value"]
                self.expect(reserved + outside == device, f"{reserved} reserved + {outside} outside are not {device}", done)
                self.expect(peak <= reserved, f"allocates {peak} and reserves {reserved}", done)

    def test_the_verdict_says_where_the_band_lies(self):
        for _, done in self.answers:
            memory = done.json["memory"]
            usable, peak, verdict = memory["usable_bytes"], memory["device_peak_bytes"], memory["verdict"]
            if verdict == "FITS":
                self.expect(peak["high"] <= usable and memory["fits"], "FITS, and the band does not lie within", done)
            elif verdict == "RISKY":
                crosses = peak["low"] <= usable < peak["high"]
                self.expect(crosses or memory["only_by_flushing"], "RISKY, and the band does not cross", done)
            else:
                self.expect(not memory["fits"] or peak["low"] > usable, f"{verdict}, and it fits", done)
            self.expect(done.code == (GOOD if memory["fits"] else NO), "the exit code says otherwise", done)

    def test_with_strict_the_exit_code_is_that_of_what_surely_fits(self):
        strict = self.stoker.each([*done.words, "--strict"] for _, done in self.answers)
        for (_, done), second in zip(self.answers, strict):
            self.expect(second.code == (GOOD if done.json["memory"]["verdict"] == "FITS" else NO), "--strict", done, second)
            self.expect(second.out == done.out, "--strict changes the answer", done, second)

    def test_phases_add_up_to_the_step(self):
        for _, done in self.answers:
            time = done.json["time"]
            phases = [time[name]["value"] for name in ("load_ms", "forward_ms", "backward_ms", "optimizer_ms")]
            self.expect(near(sum(phases), time["step_ms"]["value"], 1e-6), f"{phases} are not {time['step_ms']['value']}", done)
            bound = [figure["value"] for figure in time["kernels_bound_by_ms"].values()]
            # A graph has no gaps between kernels, and a loader's own kernels run beside the step's.
            exact = not done.json["settings"]["cuda_graphs"] and not done.json["settings"]["prefetching_loader"]
            self.expect(near(sum(bound), time["kernels_ms"]["value"], 1e-6 if exact else 0.02),
                        f"{bound} are not {time['kernels_ms']['value']}", done)
            for name in ("communication_ms", "copy_ms"):
                # The wait for the slowest rank is exposed besides.
                waits = name == "communication_ms" and done.json["settings"]["gpus"] > 1
                self.expect(waits or time["exposed_" + name]["value"] <= time[name]["value"] * (1 + 1e-6) + 1e-9,
                            f"more of {name} is exposed than there is", done)

    def test_no_bound_of_the_step_is_longer_than_the_step(self):
        for _, done in self.answers:
            time = done.json["time"]
            bounds = [bound["ms"] for bound in time["bounds"]]
            self.expect(bounds == sorted(bounds, reverse=True), "bounds are not sorted", done)
            self.expect(bounds[0] <= time["step_ms"]["value"] * (1 + 1e-6), f"{bounds[0]} bounds {time['step_ms']['value']}", done)

    def test_the_rate_is_samples_over_time(self):
        for _, done in self.answers:
            answer = done.json
            chosen, step = answer["settings"], value(answer, "time.step_ms")
            self.expect(chosen["global_batch"] == chosen["batch"] * chosen["gpus"] * chosen["accumulate"], "another global batch", done)
            rate, wait = value(answer, "throughput_samples_per_s"), 0.0
            if answer["input"]["known"]:
                wait = value(answer, "input.wait_ms")
            self.expect(rate <= chosen["global_batch"] / step * 1e3 * (1 + 1e-6), "faster than its steps", done)
            if wait == 0 and not answer["input"]["known"]:
                self.expect(near(rate, chosen["global_batch"] / step * 1e3, 1e-6), f"{rate} samples/s of {step} ms", done)

    def test_times_and_money_of_a_run_follow_from_its_epochs(self):
        for _, done in self.answered(given={"samples": 40_000, "price": 1.5, "epochs": self.chance.randint(2, 30)}):
            answer = done.json
            chosen, run, gpus = answer["settings"], answer["run"], answer["settings"]["gpus"]
            epoch, first, start = (value(answer, path) for path in ("epoch_s", "run.first_epoch_s", "run.start_up_s"))
            self.expect(near(value(answer, "gpu_hours_per_epoch"), epoch * gpus / 3600), "GPU-hours of an epoch", done)
            self.expect(near(value(answer, "epoch_cost"), epoch * gpus / 3600 * 1.5), "money of an epoch", done)
            self.expect(near(value(answer, "run_cost"), value(answer, "run.total_s") * gpus / 3600 * 1.5, 1e-6), "money of a run", done)
            self.expect(near(start, sum(part["seconds"]["value"] for part in run["start_up"]), 1e-6), "start-up", done)
            self.expect(first >= start - 1e-9, "the first epoch is shorter than the start-up in it", done)
            self.expect(near(run["epoch_s"]["value"], epoch + run["validation_s"]["value"], 1e-6), "an epoch with its validation", done)
            total = first + (run["epochs"] - 1) * run["epoch_s"]["value"]
            self.expect(near(run["total_s"]["value"], total, 1e-6), f"the run takes {run['total_s']['value']}, its epochs {total}", done)
            self.expect(first >= start + run["validation_s"]["value"], "the first epoch has no validation", done)
            self.expect(epoch >= answer["dataset_samples"] / value(answer, "throughput_samples_per_s") * (1 - 1e-6) - 1,
                        "an epoch is shorter than its samples", done)
            self.expect(chosen["global_batch"] > 0, "no batch", done)

    def test_energy_is_power_over_time(self):
        seen = 0
        for _, done in self.answers:
            answer = done.json
            if "energy" not in answer:
                continue
            seen += 1
            watts, rate = value(answer, "energy.watts"), value(answer, "throughput_samples_per_s")
            joules = value(answer, "energy.joules_per_sample")
            self.expect(near(joules, watts / rate, 1e-6), f"{joules} J a sample of {watts} W at {rate}/s", done)
        self.assertGreater(seen, 3)


class Tables(Properties):
    """Several settings, GPUs or numbers of GPUs in one answer are what each is alone."""

    def test_rows_of_a_table_are_single_answers(self):
        for model, gpu, given in self.jobs(count=8, most=3):
            given = {name: kept for name, kept in given.items() if name not in ("batch", "precision")}
            whole = self.stoker(*["predict", model, "--gpu", gpu, "--host", HOST, "--batch", "4,16,300",
                                  "--precision", "fp32,amp-fp16", "--json"], *words_of(given))
            if whole.code not in (GOOD, NO):
                continue
            rows = whole.json["table"]
            self.expect(len(rows) == 6, f"{len(rows)} rows of 3 x 2", whole)
            for row in rows:
                alone = self.stoker("predict", model, "--gpu", gpu, "--host", HOST, "--batch", row["batch"],
                                    "--precision", row["precision"], "--json", *words_of(given))
                if row["forecast"] is None:
                    self.expect(alone.code not in (GOOD, NO) and row["refused"][:40] in alone.error, "refused in the table alone",
                                whole, alone)
                    continue
                if self.expect(alone.code in (GOOD, NO), "is refused alone", whole, alone):
                    own = {key: alone.json[key] for key in row["forecast"]}
                    found = differences(row["forecast"], own, ("memory.remedies",))  # what to do is said of single answers
                    self.expect(not found, f"the row of {row['batch']}, {row['precision']}: {found[:3]}", whole, alone)

    def test_gpus_side_by_side_are_single_answers(self):
        for model, _, given in self.jobs(count=8, most=3):
            names = ("t4", "v100-16gb", "a100-40gb")
            both = self.stoker("predict", model, "--gpu", ",".join(names), "--host", HOST, "--json", *words_of(given))
            if both.code not in (GOOD, NO):
                continue
            rows = both.json["gpus"]
            found = {}
            for name in names:
                alone = self.stoker("predict", model, "--gpu", name, "--host", HOST, "--json", *words_of(given))
                self.expect(alone.code in (GOOD, NO), "is refused alone", both, alone)
                found[alone.json["gpu"]] = alone.json
            for row in rows:
                if row["gpu"] not in found:
                    self.expect(False, f"{row['gpu']} was not asked for", both)
                    continue
                alone = found[row["gpu"]]
                for key in ("memory", "time", "throughput_samples_per_s", "settings"):
                    if key in row and isinstance(row[key], dict):
                        self.expect(row[key] == alone[key], f"{key} of {row['gpu']} is another beside others", both)
            fits = [row for row in rows if at(row, "memory.fits")]
            rates = [value(row, "throughput_samples_per_s") for row in fits]
            self.expect(rates == sorted(rates, reverse=True), "not the fastest first", both)
            self.expect(both.code == (GOOD if fits else NO), "the exit code", both)

    def test_points_of_scaling_are_single_answers(self):
        for model in ("resnet50", "gpt2", "vgg16"):
            for gpu in ("v100-16gb", "a100-40gb"):
                curve = self.good("predict", model, "--gpu", gpu, "--batch", 16, "--gpus", "1..8", "--host", HOST,
                                  "--json")
                for point in curve.json["scaling"]["points"]:
                    if not point["possible"]:
                        continue
                    alone = self.good("predict", model, "--gpu", gpu, "--batch", 16, "--gpus", point["gpus"], "--host",
                                      HOST, "--json")
                    for path in ("throughput_samples_per_s",):
                        one, two = at(point, path)["value"], value(alone.json, path)
                        self.expect(near(one, two, 1e-6), f"{path} at {point['gpus']} GPUs: {one} in the curve, {two} alone", alone)

    def test_a_global_batch_is_batch_times_steps_times_gpus(self):
        for model, gpu, given in self.jobs(count=12, most=3):
            given = {name: kept for name, kept in given.items() if name not in ("batch", "accumulate")}
            whole = self.chance.choice((64, 96, 256, 1024, 4096))
            done = self.stoker("predict", model, "--gpu", gpu, "--host", HOST, "--global-batch", whole, "--json",
                               *words_of(given))
            if done.code not in (GOOD, NO):
                continue
            chosen = done.json["settings"]
            self.expect(chosen["batch"] * chosen["accumulate"] * chosen["gpus"] == whole == chosen["global_batch"],
                        f"{chosen['batch']} x {chosen['accumulate']} x {chosen['gpus']} is not {whole}", done)


if __name__ == "__main__":
    unittest.main()
