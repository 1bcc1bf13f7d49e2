"""Studies against Python: which trials there are, which hold, and what their measured figures come to."""

from __future__ import annotations

import csv
import io
import itertools
import math
import re
import statistics
import unittest

from cases import COUNT, Properties
from command import GOOD, near


class Expressions(Properties):
    """Conditions of a sweep, as Python has them. Numbers stay small, so that doubles are exact."""

    AXES = {"a": [1, 2, 3, 5], "b": [0.5, 2, 4], "c": ["'x'", "'y z'"]}

    def number(self, depth: int) -> str:
        pick = self.chance.random()
        if depth == 0 or pick < 0.3:
            return self.chance.choice(["a", "b", "1", "2", "7", "0.25", "3"])
        if pick < 0.4:
            return f"-{self.number(0)}"
        if pick < 0.55:
            return f"({self.number(depth - 1)})"
        if pick < 0.62:
            return f"{self.chance.choice('ab23')}^{self.chance.choice('123')}"
        return f"{self.number(depth - 1)} {self.chance.choice(['+', '-', '*', '/'])} {self.positive(depth - 1)}"

    def positive(self, depth: int) -> str:
        """A divisor, which is never nought."""
        return self.chance.choice(["a", "b", "2", "7", "(a + 1)", "b^2", "0.25"]) if depth else self.chance.choice("ab27")

    def truth(self, depth: int) -> str:
        pick = self.chance.random()
        if depth == 0 or pick < 0.45:
            return f"{self.number(2)} {self.chance.choice(['==', '!=', '<', '<=', '>', '>='])} {self.number(2)}"
        if pick < 0.55:
            return f"c {self.chance.choice(['==', '!='])} {self.chance.choice(self.AXES['c'])}"
        if pick < 0.65:
            return f"a in (1, 3, {self.chance.randint(2, 5)})"
        if pick < 0.75:
            return f"not ({self.truth(depth - 1)})"
        if pick < 0.8:
            return f"a % {self.chance.randint(1, 4)} == {self.chance.randint(0, 3)}"
        return f"{self.truth(depth - 1)} {self.chance.choice(['and', 'or'])} {self.truth(depth - 1)}"

    def test_a_condition_holds_where_python_says_so(self):
        names = list(self.AXES)
        combinations = list(itertools.product(*self.AXES.values()))
        words = [word for name, values in self.AXES.items()
                 for word in ("--vary", f"{name}=" + ",".join(str(value).strip("'") for value in values))]
        for _ in range(COUNT * 3):
            condition = self.truth(3)
            python = condition.replace("^", "**")
            expected = [" ".join(str(value).strip("'") for value in values) for values in combinations
                        if eval(python, {}, dict(zip(names, [eval(str(value)) for value in values])))]
            done = self.stoker("sweep", "--dry-run", *words, "--condition", condition, "--", "printf", "%s", "{a} {b} {c}")
            if not expected:
                self.expect(done.code != GOOD, f"{condition}: no trial is left, and there are some", done)
                continue
            found = re.findall(r"^\d+  printf %s '([^']*)'", done.out, re.MULTILINE)
            self.expect(found == expected, f"{condition}: {found}, Python has {expected}", done)
            excluded = self.stoker("sweep", "--dry-run", *words, "--exclude", condition, "--", "printf", "%s", "{a} {b} {c}")
            others = re.findall(r"^\d+  printf %s '([^']*)'", excluded.out, re.MULTILINE)
            self.expect(len(found) + len(others) == len(combinations),
                        f"{condition}: {len(found)} hold and {len(others)} do not, of {len(combinations)}", done, excluded)

    def test_arithmetic_in_braces_is_pythons(self):
        for _ in range(COUNT * 2):
            text = self.number(3)
            done = self.stoker("sweep", "--dry-run", "--vary", "a=1,2,3", "--vary", "b=0.5,4", "--", "echo", "{" + text + "}")
            if not self.expect(done.code == GOOD, "is refused", done):
                continue
            found = re.findall(r"^\d+  echo (\S+)$", done.out, re.MULTILINE)
            expected = [eval(text.replace("^", "**"), {}, {"a": a, "b": b}) for a in (1, 2, 3) for b in (0.5, 4)]
            self.expect(len(found) == 6 and all(near(float(one.strip("'")), two, 1e-5) for one, two in zip(found, expected)),
                        f"{text} is {found}, Python has {expected}", done)

    def test_ranges_are_what_their_words_say(self):
        def trials(values):
            done = self.good("sweep", "--dry-run", "--vary", f"v={values}", "--", "echo", "{v}")
            return [float(text) for text in re.findall(r"^\d+  echo (\S+)$", done.out, re.MULTILINE)]

        for _ in range(COUNT):
            low, high = sorted(self.chance.sample(range(0, 60), 2))
            self.assertEqual(trials(f"{low}..{high}"), [float(v) for v in range(low, high + 1)])
            first, factor = self.chance.randint(1, 9), self.chance.randint(2, 4)
            last = first * factor ** self.chance.randint(1, 5) + self.chance.choice((0, 1))
            expected = [float(first * factor**n) for n in range(20) if first * factor**n <= last]
            self.assertEqual(trials(f"{first}..{last}x{factor}"), expected)
            low = -self.chance.randint(1, 7)
            self.assertEqual(len(trials(f"1e{low}..1e0")), 1 - low)

    def test_repetitions_have_seeds_one_after_the_other(self):
        done = self.good("sweep", "--dry-run", "--vary", "a=1,2", "--repeat", 3, "--seed", 40, "--", "echo", "{a}", "{seed}", "{repeat}")
        found = re.findall(r"^\d+  echo (\d+) (\d+) (\d+)$", done.out, re.MULTILINE)
        self.assertEqual(sorted(found), sorted((str(a), str(40 + n), str(n)) for a in (1, 2) for n in range(3)))

    def test_a_dry_run_for_machines_has_the_trials_of_the_one_for_people(self):
        for words in (["--vary", "a=1,2,3", "--vary", "b=x,y z", "--", "echo", "{a}", "{b}", "{seed}"],
                      ["--vary", "cores=1,100000", "--cores", "{cores}", "--repeat", "2", "--", "sh", "-c", "exit {cores}"],
                      ["--vary", "batch=8,16,4096", "--model", "resnet50", "--gpu", "t4", "--forecast", "batch={batch}", "--", "train",
                       "{batch}"]):
            shown, told = self.good("sweep", "--dry-run", *words), self.good("sweep", "--dry-run", "--json", *words)
            lines = [re.sub(r"  # .*", "", line) for line in shown.out.splitlines() if re.match(r"\d+  ", line)]
            trials = told.json["trials"]
            rebuilt = [f"{t['trial']}  " + (f"not run: {t['reason']}" if t["state"] == "not_run" else t["command"]) for t in trials]
            self.expect(rebuilt == lines, f"{rebuilt} and {lines}", shown, told)
            counts = {state: sum(t["state"] == state for t in trials) for state in {t["state"] for t in trials}}
            self.expect(told.json["counts"] == counts, f"{told.json['counts']}", told)
            self.expect("--model" not in words or any(t["forecast"] for t in trials), "no forecast", told)

    def test_an_order_by_chance_has_the_same_trials(self):
        orders = [re.findall(r"echo (\S+ \S+)$", self.good("sweep", "--dry-run", "--vary", "a=1..6", "--vary", "b=1..5", "--order", order,
                                                           "--seed", seed, "--", "echo", "{a}", "{b}").out, re.MULTILINE)
                  for order, seed in (("written", 1), ("random", 1), ("random", 2))]
        self.assertEqual(sorted(orders[0]), sorted(orders[1]))
        self.assertEqual(sorted(orders[0]), sorted(orders[2]))


def student_quantile(degrees: int, share: float = 0.975) -> float:
    """By the integral of Student's density."""
    scale = math.exp(math.lgamma((degrees + 1) / 2) - math.lgamma(degrees / 2)) / math.sqrt(degrees * math.pi)

    def below(x: float, parts: int = 2000) -> float:
        width = x / parts
        values = [scale * (1 + (n * width) ** 2 / degrees) ** (-(degrees + 1) / 2) for n in range(parts + 1)]
        return 0.5 + width / 3 * (values[0] + values[-1] + 4 * sum(values[1:-1:2]) + 2 * sum(values[2:-1:2]))

    low, high = 0.0, 700.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if below(middle, 4000) < share else (low, middle)
    return low


class Measured(Properties):
    """One study of trials that print planted figures, read in all ways that there are."""

    BATCHES, WORKERS, REPEAT = (8, 16, 32), (1, 2, 4), 2

    @classmethod
    def setUpClass(cls) -> None:
        import random

        from command import stoker
        chance = random.Random("planted")
        cls.planted = {number: (round(100 * chance.uniform(0.8, 1.2) * number, 2), round(chance.uniform(0.1, 0.9), 4))
                       for number in range(1, len(cls.BATCHES) * len(cls.WORKERS) * cls.REPEAT + 1)}
        table = stoker().file("planted.txt", "".join(f"rate: {rate} loss: {loss}\n" for rate, loss in cls.planted.values()))
        cls.done = stoker().run("sweep", "--vary", "batch=" + ",".join(map(str, cls.BATCHES)), "--vary",
                                "workers=" + ",".join(map(str, cls.WORKERS)), "--repeat", str(cls.REPEAT), "--metric",
                                "samples_per_s=rate: ([0-9.]+)", "--metric", "loss=loss: ([0-9.]+)", "--store", "planted.db", "--quiet",
                                "--json", "--at-most", "2", "--", "sed", "-n", "{trial}p", table)

    def setUp(self) -> None:
        super().setUp()
        self.assertEqual(self.done.code, GOOD, str(self.done))
        self.trials = self.good("study", "planted.db", "--json").json["trials"]

    def test_every_trial_has_the_figures_that_it_printed(self):
        self.assertEqual(len(self.trials), len(self.planted))
        for trial in self.trials:
            rate, loss = self.planted[trial["trial"]]
            self.expect((trial["metrics"]["samples_per_s"], trial["metrics"]["loss"]) == (rate, loss), f"{trial}")
            self.expect(trial["state"] == "done" and trial["exit_code"] == 0, f"{trial}")
        settings = sorted((t["values"]["batch"], t["values"]["workers"], t["repeat"]) for t in self.trials)
        self.assertEqual(settings, sorted(itertools.product(self.BATCHES, self.WORKERS, range(self.REPEAT))))

    def test_the_sweep_says_what_the_study_says(self):
        self.assertEqual(self.done.json["trials"], self.trials)

    def test_a_row_of_the_csv_is_a_trial(self):
        rows = list(csv.DictReader(io.StringIO(self.good("study", "planted.db", "--csv").out)))
        self.assertEqual(len(rows), len(self.trials))
        for row, trial in zip(rows, self.trials):
            self.expect(int(row["trial"]) == trial["trial"] and row["state"] == trial["state"], f"{row}")
            for name, planted in zip(("samples_per_s", "loss"), self.planted[trial["trial"]]):
                self.expect(float(row[name]) == planted, f"{name}: {row}")

    def test_a_condition_selects_what_python_selects(self):
        for condition in ("batch > 8", "workers == 2 and loss < 0.5", "samples_per_s >= 900 or batch == 32", "not (trial % 3 == 0)",
                          "state == 'done' and batch*workers <= 32", "state != 'done'", "loss > 0.3 and loss < 0.6"):
            done = self.stoker("study", "planted.db", "--json", "--where", condition)
            expected = [trial["trial"] for trial in self.trials
                        if eval(condition, {}, {**trial["values"], **trial["metrics"], "state": trial["state"], "trial": trial["trial"]})]
            found = [trial["trial"] for trial in done.json["trials"]] if done.out else []
            self.expect(found == expected, f"{condition}: {found}, Python has {expected}", done)

    def test_groups_are_means_over_their_trials(self):
        for axes in (["batch"], ["workers"], ["batch", "workers"]):
            groups = self.good("study", "planted.db", "--json", "--by", ",".join(axes)).json["groups"]
            self.expect(sum(group["trials"] for group in groups) == len(self.trials), f"{groups}")
            for group in groups:
                own = [trial for trial in self.trials if all(trial["values"][axis] == group["values"][axis] for axis in axes)]
                self.expect(len(own) == group["trials"] == group["done"], f"{group}")
                for name, told in group["metrics"].items():
                    values = [trial["metrics"][name] for trial in own if name in trial["metrics"]]
                    if name in ("samples_per_s", "loss"):
                        self.expect(told["count"] == len(values) and near(told["mean"], statistics.fmean(values)), f"{name} of {group}")
                        deviation = statistics.stdev(values) if len(values) > 1 else 0
                        self.expect(near(told["deviation"] or 0, deviation, 1e-6), f"{name}: deviation {told}, not {deviation}")

    def test_effects_are_means_over_pairs_that_differ_in_nothing_else(self):
        found = self.good("study", "planted.db", "--json", "--findings").json["findings"]
        value = {(t["values"]["batch"], t["values"]["workers"], t["repeat"]): t["metrics"] for t in self.trials}
        seen = 0
        for metric in found["metrics"]:
            name = metric["metric"]
            if name not in ("samples_per_s", "loss"):
                continue
            for effect in metric["effects"]:
                place = ("batch", "workers").index(effect["axis"])
                base = float(effect["from"])
                for level in effect["levels"]:
                    logs = []
                    for key, metrics in value.items():
                        if key[place] != base:
                            continue
                        other = tuple(float(level["value"]) if n == place else kept for n, kept in enumerate(key))
                        logs.append(math.log(value[other][name] / metrics[name]))
                    half = student_quantile(len(logs) - 1) * statistics.stdev(logs) / math.sqrt(len(logs))
                    mean = statistics.fmean(logs)
                    expected = [math.exp(x) for x in (mean, mean - half, mean + half)]
                    told = [level["change"], level["low"], level["high"]]
                    seen += 1
                    self.expect(level["pairs"] == len(logs) and all(near(a, b, 1e-3) for a, b in zip(told, expected)),
                                f"{name} by {effect['axis']} {level}: Python has {expected} of {len(logs)} pairs")
        self.assertGreaterEqual(seen, 8)

    def test_the_best_settings_are_those_of_the_best_means(self):
        found = self.good("study", "planted.db", "--json", "--findings").json["findings"]
        told = {row["figure"]: {name: float(value) for name, value in row["values"].items()} for row in found["best"]}
        for name, best in (("samples_per_s", max), ("loss", min)):
            means = {(batch, workers): statistics.fmean(t["metrics"][name] for t in self.trials
                                                        if (t["values"]["batch"], t["values"]["workers"]) == (batch, workers))
                     for batch, workers in itertools.product(self.BATCHES, self.WORKERS)}
            self.assertEqual(means[told[name]["batch"], told[name]["workers"]], best(means.values()), name)


if __name__ == "__main__":
    unittest.main()
