"""What can only get better, or worse, when one thing changes and all else stays."""

from __future__ import annotations

import unittest

import draw
from cases import COUNT, Properties
from command import GOOD, HOST, NO, at, stoker

SLACK = 1 + 1e-9


def value(answer, path: str) -> float:
    found = at(answer.json, path)
    return found["value"] if isinstance(found, dict) else found


class Monotone(Properties):
    def ladder(self, name: str, values, base: dict | None = None, count: int = max(2, COUNT // 6), most: int = 3):
        """(name's values, answers) of random jobs in which one setting climbs; a job that is refused is left out whole."""
        found = 0
        for model, gpu, given in self.jobs(6 * count, most):
            if found == count:
                break
            given = {**{key: kept for key, kept in given.items() if key != name}, **(base or {})}
            first = self.stoker(*draw.predict(model, gpu, {**given, name: values[0]}))
            if first.code not in (GOOD, NO):
                continue
            answers = self.stoker.each(draw.predict(model, gpu, {**given, name: one}) for one in values)
            if all(answer.code in (GOOD, NO) for answer in answers):
                found += 1
                yield answers
        self.assertGreater(found, count // 2)

    def never(self, answers, path: str, way: int, what: str, slack: float = SLACK) -> None:
        """A value never falls (way 1) or never rises (way -1) from one answer to the next."""
        for one, two in zip(answers, answers[1:]):
            a, b = value(one, path), value(two, path)
            holds = b * slack >= a if way > 0 else b <= a * slack
            self.expect(holds, f"{what}: {path} goes from {a} to {b}", one, two)

    def test_a_larger_batch_never_needs_less_memory_and_no_less_time(self):
        for answers in self.ladder("batch", (1, 2, 4, 8, 16, 32, 64, 128)):
            for path in ("memory.allocated_peak_bytes", "time.step_ms", "time.kernels_ms"):
                self.never(answers, path, 1, "a larger batch")
            fits = [answer.json["memory"]["fits"] for answer in answers]
            self.expect(fits == sorted(fits, reverse=True), f"a larger batch fits again: {fits}", *answers[-1:])

    def test_the_largest_batch_is_where_memory_ends(self):
        """By asking for it, which goes another way than the search."""
        for model, gpu, given in self.jobs(count=10, most=3):
            given = {key: kept for key, kept in given.items() if key not in ("batch", "prefetching-loader")}
            start = self.stoker(*draw.predict(model, gpu, given))
            most = at(start.json, "memory.max_batch") if start.code in (GOOD, NO) else None
            if not most or most["value"] < 1:
                continue
            at_most, beyond = (self.stoker(*draw.predict(model, gpu, {**given, "batch": int(batch)}))
                               for batch in (most["value"], most["value"] + 1))
            self.expect(at_most.code in (GOOD, NO) and at_most.json["memory"]["fits"], f"{most['value']} does not fit", start, at_most)
            if beyond.code in (GOOD, NO):
                self.expect(not beyond.json["memory"]["fits"], f"{most['value'] + 1} fits", start, beyond)
            if most["low"] >= 1:
                safe = self.stoker(*draw.predict(model, gpu, {**given, "batch": int(most["low"])}))
                self.expect(safe.json["memory"]["verdict"] == "FITS", f"{most['low']} is not safe", start, safe)
                named = self.stoker(*draw.predict(model, gpu, {**given, "batch": "max"}))
                self.expect(named.json["settings"]["batch"] == most["low"], "--batch max is another", start, named)

    def gpus(self, key: str, values, base: str = "v100-16gb", more: str = "") -> list:
        """Machine files that differ in one figure of the GPU."""
        return [stoker().file(f"{base}-{key}-{number}.toml",
                              f'format_version = 1\nname = "lab"\n[gpu]\nbase = "{base}"\nname = "of mine"\n{key} = {one}\n{more}')
                for number, one in enumerate(values)]

    def by_gpu(self, files: list, count: int = max(2, COUNT // 8), most: int = 3):
        found = 0
        for model, _, given in self.jobs(6 * count, most):
            if found == count:
                break
            first = self.stoker(*draw.predict(model, files[0], given))
            if first.code not in (GOOD, NO):
                continue
            answers = self.stoker.each(draw.predict(model, file, given) for file in files)
            if all(answer.code in (GOOD, NO) for answer in answers):
                found += 1
                yield answers
        self.assertGreater(found, count // 2)

    def test_more_memory_never_fits_less(self):
        for answers in self.by_gpu(self.gpus("memory", ['"8GiB"', '"12GiB"', '"24GiB"', '"80GiB"'])):
            fits = [answer.json["memory"]["fits"] for answer in answers]
            self.expect(fits == sorted(fits), f"more memory fits less: {fits}", *answers)
            for path in ("memory.max_batch", "memory.usable_bytes"):
                if all(at(answer.json, path) for answer in answers):
                    self.never(answers, path, 1, "more memory")
            self.never(answers, "time.step_ms", -1, "more memory")

    def test_a_faster_gpu_is_never_slower(self):
        for key, values in (("bandwidth_gbs", (200, 400, 900, 3000)), ("fp32_tflops", (4, 8, 15, 60)),
                            ("fp16_tensor_tflops", (20, 60, 125, 500))):
            for answers in self.by_gpu(self.gpus(key, values)):
                self.never(answers, "time.step_ms", -1, f"more {key}", 1 + 1e-6)
                for path in ("memory.allocated_peak_bytes",):
                    self.never(answers, path, 1, f"more {key}")
                    self.never(answers, path, -1, f"more {key}")

    def test_a_faster_host_is_never_slower(self):
        for model, gpu, given in self.jobs(count=8, most=3):
            given = {**given, "sample-cost": "4ms", "samples": 50_000}
            hosts = [f"{HOST},speed={speed}" for speed in (0.5, 1, 2, 4)]
            answers = self.stoker.each(draw.predict(model, gpu, given, host=host) for host in hosts)
            if all(answer.code in (GOOD, NO) for answer in answers):
                self.never(answers, "throughput_samples_per_s", 1, "a faster host", 1 + 1e-6)
                self.never(answers, "input.ceiling_samples_per_s", 1, "a faster host", 1 + 1e-6)

    def test_more_cores_are_never_slower(self):
        for model, gpu, given in self.jobs(count=8, most=3):
            given = {**given, "sample-cost": "4ms", "samples": 50_000, "workers": 8}
            hosts = [f"cores={cores},ram=64G,shm=16G" for cores in (1, 2, 4, 8, 32)]
            answers = self.stoker.each(draw.predict(model, gpu, given, host=host) for host in hosts)
            if all(answer.code in (GOOD, NO) for answer in answers):
                self.never(answers, "throughput_samples_per_s", 1, "more cores", 1 + 1e-6)

    def test_costlier_samples_are_never_faster(self):
        for answers in self.ladder("sample-cost", ("0.1ms", "1ms", "5ms", "20ms", "100ms"), {"samples": 50_000}):
            for path in ("throughput_samples_per_s", "gpu_utilization", "input.ceiling_samples_per_s"):
                self.never(answers, path, -1, "costlier samples", 1 + 1e-6)
            self.never(answers, "epoch_s", 1, "costlier samples", 1 + 1e-6)

    def test_workers_that_have_a_core_each_are_never_slower(self):
        for answers in self.ladder("workers", (1, 2, 3, 4, 6, 8), {"sample-cost": "6ms", "samples": 200_000, "gpus": 1, "pin": False}):
            self.never(answers, "input.ceiling_samples_per_s", 1, "more workers", 1 + 1e-6)
            self.never(answers, "throughput_samples_per_s", 1, "more workers", 1 + 1e-6)

    def test_deeper_prefetching_waits_no_longer_and_holds_no_less(self):
        for answers in self.ladder("prefetch", (1, 2, 4, 8), {"sample-cost": "6ms", "samples": 200_000, "workers": 4}):
            self.never(answers, "throughput_samples_per_s", 1, "deeper prefetching", 1 + 1e-6)
            self.never(answers, "input.shared_memory_bytes", 1, "deeper prefetching")

    def test_a_faster_network_is_never_slower(self):
        for answers in self.ladder("network", ("1G", "10G", "100G", "4x100G"), {"gpus": 4, "nodes": 2, "parallel": "ddp"}):
            self.never(answers, "time.step_ms", -1, "a faster network", 1 + 1e-6)
            self.never(answers, "time.exposed_communication_ms", -1, "a faster network", 1 + 1e-6)

    def test_accumulating_takes_as_many_steps_and_no_second_set_of_activations(self):
        for answers in self.ladder("accumulate", (1, 2, 4, 8), {"gpus": 1}):
            self.never(answers, "time.step_ms", 1, "accumulating more")
            one = value(answers[0], "time.step_ms")
            for times, answer in zip((1, 2, 4, 8), answers):
                self.expect(value(answer, "time.step_ms") <= times * one * 1.02, f"{times} batches take longer than {times} steps", answer)

    def test_an_epoch_grows_with_its_samples(self):
        for answers in self.ladder("samples", (1_000, 10_000, 50_000, 200_000), {"sample-cost": "1ms", "gpus": 1}):
            self.never(answers, "epoch_s", 1, "more samples")

    def test_what_is_switched_on_costs_what_it_costs(self):
        """A moving average or clipping takes memory or time and gives neither."""
        for name in ("ema", "clip", "grad-scaler", "zero-grad-fills"):
            for model, gpu, given in self.jobs(count=5, most=2):
                without, having = (self.stoker(*draw.predict(model, gpu, {**given, name: on} if on is not None else given))
                                   for on in ((False, True) if name != "zero-grad-fills" else (None, True)))
                if without.code in (GOOD, NO) and having.code in (GOOD, NO):
                    self.never([without, having], "time.step_ms", 1, f"--{name}")
                    self.never([without, having], "memory.allocated_peak_bytes", 1, f"--{name}")

    def test_sharding_over_more_gpus_never_needs_more_memory(self):
        for model in ("gpt2", "bert_base", "vit_b_16"):
            answers = [self.good("predict", model, "--gpu", "a100-40gb", "--host", HOST, "--parallel", "fsdp", "--gpus", gpus,
                                 "--optimizer", "adamw", "--batch", 4, "--json") for gpus in (2, 4, 8)]
            for path in ("at_peak_bytes.parameters", "at_peak_bytes.optimizer_state", "allocated_peak_bytes"):
                self.never(answers, f"memory.{path}", -1, "more GPUs to shard over", 1.01)


if __name__ == "__main__":
    unittest.main()
