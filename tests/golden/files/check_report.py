"""Reads a report's JSON on stdin; fails unless every promised figure has a value, a band around it and a basis."""

import json
import sys

report = json.load(sys.stdin)
memory, time = report["memory"], report["time"]
figures = [memory[k] for k in ("device_peak_bytes", "reserved_peak_bytes", "allocated_peak_bytes", "max_batch")]
figures += [time[k] for k in ("step_ms", "forward_ms", "backward_ms", "optimizer_ms", "host_ms")]
figures += [report[k] for k in ("throughput_samples_per_s", "gpu_utilization", "mfu")]
assert all(f["low"] <= f["value"] <= f["high"] and f["basis"] for f in figures)
assert report["limiter"]["value"] and report["limiter"]["basis"]
print(report["schema"], "fits" if memory["fits"] else "does not fit", report["settings"]["dimensions"])
for section in sys.argv[1:]:
    print(section, sorted(report[section]))
