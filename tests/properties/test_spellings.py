"""One setting, however it is spelled: flags in any order, their other names, Python's keywords, and the settings of an answer."""

from __future__ import annotations

import re
import sys
import unittest

import draw
import table
from cases import Properties
from command import BAD, GOOD, NO, REPOSITORY, USAGE, differences

sys.path.insert(0, str(REPOSITORY / "python"))
from stoker import binary as python  # noqa: E402  (needs no PyTorch)

# How a name of an answer's settings is a flag, and what of its value the flag takes.
OF_ANSWERS = {
    "batch": "batch", "gpus": "gpus", "nodes": "nodes", "accumulate": "accumulate", "precision": "precision", "optimizer": "optimizer",
    "optimizer_loop": "optimizer-loop", "fsdp_mixed_precision": "fsdp-mixed-precision", "fsdp_group": "fsdp-group", "loss": "loss",
    "checkpoint": "checkpoint", "clip": "clip", "clip_checks": "clip-checks", "cuda_graphs": "cuda-graphs",
    "fsdp_cpu_offload": "fsdp-cpu-offload", "copy": "copy", "ema": "ema", "grad_scaler": "grad-scaler",
    "validation_batch": "validation", "validation_with_grad": "validation-with-grad", "zero_grad_fills": "zero-grad-fills",
    "bucket_view": "bucket-view", "prefetching_loader": "prefetching-loader", "channels_last": "channels-last", "workers": "workers",
    "prefetch": "prefetch", "pin": "pin", "persistent": "persistent-workers",
}


class Spellings(Properties):
    def test_every_setting_of_predict_is_drawn_or_says_why_not(self):
        names = {row.name for row in table.rows_of("predict")}
        self.assertEqual(names, (set(draw.DRAWN) | set(draw.NOT_DRAWN)) & names)
        self.assertEqual(set(draw.DRAWN) & set(draw.NOT_DRAWN), set())
        self.assertEqual((set(draw.DRAWN) | set(draw.NOT_DRAWN)) - names, set())

    def test_drawn_values_are_within_the_range_that_is_told(self):
        for row in draw.drawn_rows():
            values = [draw.DRAWN[row.name](self.chance) for _ in range(20)]
            if row.range and all(isinstance(value, (int, float)) for value in values):
                low, high = row.range
                self.expect(all(low <= value <= (high or value) for value in values), f"{row.name}: {values}")

    def same(self, spell, what: str):
        jobs = [job for job in self.jobs() if job[2]]
        plain = self.stoker.each(draw.predict(*job) for job in jobs)
        spelled = self.stoker.each(spell(*job) for job in jobs)
        for one, two in zip(plain, spelled):
            self.expect((one.code, one.out) == (two.code, two.out), what, one, two)

    def test_other_names_of_a_setting_are_the_setting(self):
        aliases = {row.name: row.aliases for row in draw.drawn_rows() if row.aliases}
        self.assertGreater(len(aliases), 10)

        def spell(model, gpu, given):
            return draw.predict(model, gpu, {(self.chance.choice(aliases[name]) if name in aliases else name): value
                                             for name, value in given.items()})

        self.same(spell, "another name, another answer")

    def test_the_order_of_flags_does_not_matter(self):
        self.same(lambda model, gpu, given: draw.predict(model, gpu, dict(reversed(given.items()))), "another order, another answer")

    def test_underscores_are_hyphens(self):
        def spell(model, gpu, given):
            return draw.predict(model, gpu, {name.replace("-", "_"): value for name, value in given.items()})

        self.same(spell, "underscores, another answer")

    def test_a_value_may_stand_behind_an_equals_sign(self):
        def spell(model, gpu, given):
            words = ["--" + name if value is True else "--no-" + name if value is False else f"--{name}={value}"
                     for name, value in given.items()]
            return [*draw.predict(model, gpu, {}), *words]

        self.same(spell, "an equals sign, another answer")

    def test_keywords_of_python_are_flags(self):
        def spell(model, gpu, given):
            return [*draw.predict(model, gpu, {}), *python.arguments({name.replace("-", "_"): value for name, value in given.items()})]

        self.same(spell, "a keyword, another answer")

    def test_an_answers_settings_given_back_are_the_same_job(self):
        for (model, gpu, given), answer in self.answered():
            told, again = answer.json["settings"], dict(given)
            for name, flag in OF_ANSWERS.items():
                value = ",".join(told[name]) if isinstance(told[name], list) else told[name]
                if value in (False, "", "none", 0) and flag not in given and flag not in ("workers", "pin", "persistent-workers"):
                    continue  # an absent switch has no flag that says so
                if flag == "checkpoint" or value in ("none", ""):
                    continue
                again[flag] = value
            if told["gpus"] > 1:
                again["parallel"] = told["parallel"]
            second = self.stoker(*draw.predict(model, gpu, again))
            ignored = ("assumed", "excluded")  # what was left to a default is given the second time
            if self.expect(second.code in (GOOD, NO), "the settings of an answer are refused", answer, second):
                found = differences(answer.json, second.json, ignored)
                self.expect(not found, "the settings of an answer, another answer: " + "; ".join(found[:4]), answer, second)

    def test_what_was_given_is_what_the_answer_says(self):
        flags = {flag: name for name, flag in OF_ANSWERS.items()}
        for (_, _, given), answer in self.answered(more=("--explain",)):
            told = answer.json["settings"]
            for flag, value in given.items():
                if flag in flags and flag != "checkpoint":
                    self.expect(told[flags[flag]] == value, f"--{flag} {value} became {told[flags[flag]]}", answer)


class Refusals(Properties):
    """What cannot be meant is refused in one sentence that names flags which exist."""

    def check(self, verb: str, answer) -> None:
        self.expect(answer.code in (USAGE, BAD), "refused with another code than 2 or 3", answer)
        self.expect(not answer.out, "prints an answer all the same", answer)
        lines = [line for line in answer.error.strip().splitlines() if line]
        self.expect(len(lines) >= 1 and lines[-1].startswith("stoker"), "is not one sentence of ours", answer)
        for flag in re.findall(r"(?<![\w-])--([a-z][\w-]*)", answer.error):
            self.expect(flag in table.names_of(verb) or flag in answer.words or any(word.startswith(f"--{flag}") for word in answer.words),
                        f"names --{flag}, which {verb} does not have", answer)

    def test_jobs_that_cannot_be(self):
        seen = 0
        for job in self.jobs(count=120, most=9):
            answer = self.stoker(*draw.predict(*job))
            if answer.code not in (GOOD, NO):
                seen += 1
                self.check("predict", answer)
        self.assertGreater(seen, 5)

    def test_numbers_beyond_their_range(self):
        commands = []
        for verb in ("predict", "plan"):
            for row in table.rows_of(verb):
                if not row.range or row.name in ("step-ms", "cores", "gpus-per-node", "threads"):
                    continue
                low, high = row.range
                outside = [low - 1 if not row.excludes_least else low, *([high * 2 + 1] if high else [])]
                commands += [(row, [verb, "resnet18", "--gpu", "t4", f"--{row.name}={value:.0f}"]) for value in outside]
        self.assertGreater(len(commands), 40)
        for (row, words), answer in zip(commands, self.stoker.each(words for _, words in commands)):
            self.check(words[0], answer)
            self.expect(f"--{row.name}" in answer.error, f"does not name --{row.name}", answer)

    def test_words_for_numbers_and_numbers_for_words(self):
        commands = []
        for verb in ("predict", "plan"):
            for row in table.rows_of(verb):
                if not row.value or row.name in ("gpu", "html", "data", "from", "coefficients", "dim", "assume", "host"):
                    continue
                commands += [[verb, "resnet18", "--gpu", "t4", f"--{row.name}={text}"] for text in ("", "nonsense", "-1", "1e400", "nan")]
        for words, answer in zip(commands, self.stoker.each(commands)):
            if answer.code in (GOOD, NO):
                accepted = ("checkpoint", "batch-arg", "alloc-conf", "time-limit", "max-host-memory", "fake-data")  # texts, or of scripts
                self.expect(any(f"--{name}=" in words[-1] for name in accepted), "takes it", answer)
            else:
                self.check(words[0], answer)


if __name__ == "__main__":
    unittest.main()
