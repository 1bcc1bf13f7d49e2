"""A plan against forecasts of single settings: what it chose is what `predict` says of it, and nothing that it left is better."""

from __future__ import annotations

import math
import random
import unittest

import draw
from cases import SEED, Properties
from command import BAD, GOOD, HOST, NO, USAGE, at, near

SAME_SPEED = 0.02  # docs/architecture.md: settings within it are equal, and the smaller batch wins
MORE_GPUS = 0.10  # what another GPU must bring


def value(answer: dict, path: str) -> float:
    return at(answer, path)["value"]


def settings_as_flags(chosen: dict) -> dict:
    given = {name: chosen[name] for name in ("batch", "gpus", "precision", "workers", "prefetch", "accumulate", "optimizer")}
    return {**given, "pin": chosen["pin"], "optimizer-loop": chosen["optimizer_loop"]}


class Plans(Properties):
    PLANNED = (("resnet50", "t4", "1,2"), ("gpt2", "v100-16gb", "1..4"), ("cnn_cifar10", "l4", "1"), ("bert_base", "rtx-3090", "1,2"),
               ("vit_b_16", "a100-40gb", "1,4"), ("mobilenet_v3_large", "t4", "1"))

    def setUp(self) -> None:
        super().setUp()
        self.planned, chance = [], random.Random(f"{SEED} plans")  # the same for all tests
        for model, gpu, gpus in self.PLANNED:
            more = ["--sample-cost", chance.choice(("1ms", "4ms", "12ms")), "--samples", str(chance.randint(2, 90) * 1000), "--price", "2"]
            done = self.stoker("plan", model, "--gpu", gpu, "--gpus", gpus, "--host", HOST, "--json", *more)
            self.assertEqual(done.code, GOOD, str(done))
            self.planned.append((model, gpu, more, done))

    def test_what_is_recommended_is_what_predict_says_of_it(self):
        for model, gpu, more, done in self.planned:
            for row in (done.json, *done.json["plan"]["by_gpus"], *done.json["plan"]["by_precision"]):
                alone = self.stoker(*draw.predict(model, gpu, settings_as_flags(row["settings"])), *more)
                if not self.expect(alone.code == GOOD, "predict refuses what the plan recommends", done, alone):
                    continue
                for path in ("settings", "memory", "time", "input", "throughput_samples_per_s", "epoch_s", "epoch_cost", "limiter"):
                    one, two = at(row, path), at(alone.json, path)
                    if isinstance(one, dict) and isinstance(two, dict):
                        wrong = [key for key in one.keys() & two.keys() if one[key] != two[key]]
                        self.expect(not wrong, f"{path} of the plan: {[(key, one[key], two[key]) for key in wrong][:2]}", done, alone)

    def test_the_plan_of_the_input_has_the_rate_of_the_job_with_its_band(self):
        for _, _, _, done in self.planned:
            whole, part = done.json["throughput_samples_per_s"], done.json["plan"]["input"]["throughput_samples_per_s"]
            self.expect(whole == part, f"{part} of the input, {whole} of the job", done)

    def test_the_batch_is_the_smallest_of_those_that_are_as_fast(self):
        """By one forecast for each batch, with all of the host's cores at work."""
        for model, gpu, more, done in self.planned:
            chosen, reason = done.json["settings"], done.json["plan"]["batch_reason"]
            ladder = sorted({b for b in (*(2**n for n in range(12)), *(3 * 2**n for n in range(11))) if b <= reason["largest_safe"]}
                            | {reason["best_batch"], chosen["batch"]})
            given = {**settings_as_flags(chosen), "batch": ",".join(map(str, ladder))}
            table = self.good(*draw.predict(model, gpu, given), *more).json["table"]
            rates = {int(row["batch"]): value(row["forecast"], "throughput_samples_per_s") for row in table if row["forecast"]}
            best = max(rates.values())
            self.expect(rates[chosen["batch"]] >= (1 - 2 * SAME_SPEED) * best,
                        f"batch {chosen['batch']} reaches {rates[chosen['batch']]} of {best} samples/s: {rates}", done)
            self.expect(chosen["batch"] <= reason["largest_safe"], "is not safe", done)

    def test_no_other_number_of_gpus_of_the_plan_is_better_by_its_rule(self):
        for _, _, _, done in self.planned:
            rows = done.json["plan"]["by_gpus"]
            rates = {row["settings"]["gpus"]: value(row, "throughput_samples_per_s") for row in rows}
            chosen = done.json["settings"]["gpus"]
            for gpus, rate in rates.items():
                if gpus < chosen:
                    self.expect(rates[chosen] > rate * (1 + MORE_GPUS * 0.999), f"{chosen} GPUs bring {rates}", done)
            self.expect(near(rates[chosen], value(done.json, "throughput_samples_per_s")), "another row than that of its GPUs", done)
            self.expect([row["settings"]["gpus"] for row in rows] == sorted(rates), "rows out of order", done)

    def test_limits_are_kept(self):
        for model, gpu, gpus in self.PLANNED:
            ceiling = self.chance.choice((7, 30, 64, 200, 1000))
            cost = self.chance.choice((0.05, 0.3, 2))
            done = self.stoker("plan", model, "--gpu", gpu, "--gpus", gpus, "--host", HOST, "--max-global-batch", ceiling, "--price", 2,
                               "--samples", 50_000, "--sample-cost", "1ms", "--budget", cost, "--json")
            self.expect(done.code in (GOOD, NO), "is refused", done)
            if done.code != GOOD:
                continue
            for row in (done.json, *done.json["plan"]["by_gpus"], *done.json["plan"]["by_precision"]):
                self.expect(row["settings"]["global_batch"] <= ceiling, f"{row['settings']['global_batch']} of at most {ceiling}", done)
            self.expect(value(done.json, "epoch_cost") <= cost * (1 + 1e-9), f"costs {value(done.json, 'epoch_cost')} of {cost}", done)

    def test_what_is_fixed_stays(self):
        for model, gpu, gpus in self.PLANNED:
            fixed = {"batch": self.chance.choice((2, 5, 16)), "workers": self.chance.randint(0, 9), "prefetch": self.chance.randint(1, 5),
                     "pin": self.chance.choice((True, False)), "precision": self.chance.choice(("fp32", "amp-fp16"))}
            done = self.stoker("plan", model, "--gpu", gpu, "--gpus", gpus, "--host", HOST, "--sample-cost", "2ms", "--json",
                               *draw.words_of(fixed))
            if not self.expect(done.code == GOOD, "is refused", done):
                continue
            for row in (done.json, *done.json["plan"]["by_gpus"]):
                for name, kept in fixed.items():
                    told = row["settings"][name]
                    if name == "prefetch" and row["settings"]["workers"] == 0:
                        continue  # without workers nothing is prefetched
                    self.expect(told == kept, f"--{name} {kept} became {told}", done)

    def test_objectives_are_best_at_what_they_name(self):
        """Each objective's choice is no worse at its own figure than the other objectives' choices are."""
        figures = {"throughput": ("throughput_samples_per_s", 1), "cost": ("epoch_cost", -1), "epoch": ("epoch_s", -1),
                   "energy": ("energy.joules_per_sample", -1)}
        for model, gpu, gpus in self.PLANNED[:4]:
            plans = {name: self.good("plan", model, "--gpu", gpu, "--gpus", gpus, "--host", HOST, "--sample-cost", "2ms", "--samples",
                                     60_000, "--price", 1, "--objective", name, "--json") for name in figures}
            for name, (path, way) in figures.items():
                own = value(plans[name].json, path)
                for other, done in plans.items():
                    theirs = value(done.json, path)
                    allowed = 1 + (MORE_GPUS + SAME_SPEED) * 1.05
                    holds = own * allowed >= theirs if way > 0 else own <= theirs * allowed
                    self.expect(holds, f"{name} has {path} {own}, {other} has {theirs}", plans[name], done)

    def test_a_fit_is_a_fit_in_both_verbs(self):
        for model, gpu, given in self.jobs(count=10, most=2):
            given = {name: kept for name, kept in given.items() if name in ("optimizer", "clip", "ema", "optimizer-loop", "drop-output")}
            for batch in (8, 64, 700):
                words = {**given, "batch": batch, "precision": "fp32", "gpus": 1}
                single = self.stoker(*draw.predict(model, gpu, words))
                planned = self.stoker("plan", model, "--gpu", gpu, "--host", HOST, "--json", *draw.words_of(words))
                if USAGE in (single.code, planned.code) or BAD in (single.code, planned.code):
                    self.expect(single.code == planned.code, "one verb refuses what the other takes", single, planned)
                    continue
                self.expect((planned.code == GOOD) == single.json["memory"]["fits"], "one verb says it fits", single, planned)

    def test_goodput_is_the_forecasts_rate_times_what_a_sample_is_worth(self):
        """McCandlish et al. 2018: samples to a loss grow by 1 + batch / noise scale."""
        for model, gpu, noise in (("resnet50", "v100-16gb", 800), ("gpt2", "a100-40gb", 30), ("cnn_cifar10", "t4", 20_000)):
            done = self.good("tune", "--noise-scale", noise, "--model", model, "--gpu", gpu, "--batch", "8,64,4096", "--gpus", "1,2",
                             "--price", 2, "--forecast", f"host={HOST}", "--json")
            rows = done.json["rows"]
            self.assertEqual(len(rows), 6)
            for row in rows:
                alone = self.stoker(*draw.predict(model, gpu, {"batch": row["batch"], "gpus": row["gpus"]}))
                self.expect(row["fits"] == at(alone.json, "memory.fits"), f"{row} fits otherwise", done, alone)
                if not row["fits"]:
                    continue
                worth = 1 / (1 + row["batch"] * row["gpus"] / noise)
                self.expect(near(row["samples_per_s"], value(alone.json, "throughput_samples_per_s")), f"{row} is another rate", alone)
                self.expect(near(row["efficiency"], worth) and near(row["goodput"], worth * row["samples_per_s"]), f"{row}", done)
            running = [row for row in rows if row["fits"]]
            best = max(row["goodput"] for row in running)
            self.expect(near(done.json["soonest"]["goodput"], best), "the soonest is not the one of most goodput", done)
            for row in running:
                self.expect(near(row["time"], best / row["goodput"]), f"time of {row}", done)
            each = {id(row): row["gpus"] / row["goodput"] for row in running}
            for row in running:
                self.expect(near(row["cost"], each[id(row)] / min(each.values())), f"cost of {row}", done)

    def test_shares_and_gains_are_numbers(self):
        for _, _, _, done in self.planned:
            plan = done.json["plan"]
            self.expect(0 < plan["batch_reason"]["share_of_best"] <= 1 + 1e-9, "share of the best", done)
            self.expect(plan["settings_considered"] > 0, "considered nothing", done)
            for advice in plan["next"]:
                self.expect(math.isfinite(advice["speed_gain"]) and advice["what"].strip(), f"{advice}", done)
                if advice["speed_gain"] > 0:  # of as many GPUs: the same samples in less of their time
                    self.expect(near(1 + advice["price_change"], 1 / (1 + advice["speed_gain"])), f"{advice}", done)


if __name__ == "__main__":
    unittest.main()
