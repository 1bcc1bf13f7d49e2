"""What libraries do on the host for each kernel, and how fast named processors are, from forward passes that the host
limits -> host.json.

The rest of a dispatch is measured (data/measured/host) or a prior. What is fitted here is little, since the rows tell
little: convolutions and batch norms always come in pairs, so they share one figure.
"""
import json
import math
import os
import subprocess

from .common import Tool, descend, errors, header, nested, read_csv, write_tree

TABLE = "inference_latency.csv"
START = {"host.library_us": 24.0, "host.conversion_us": 3.0}
BEYOND = 1.25       # times what the smallest batches take: from there the GPU limits
PULL = 4.0          # each logarithm's, towards its prior; chosen by processors left out, among 0.05, 0.3, 1 and this
SPREAD = 0.15       # by hand: what operators' kinds leave open on a known processor, from models left out
POWER = {"power.pj_12nm": 14.0, "power.half_tensor": 5.0}
OF_ARCHITECTURE = ("power.half_tensor",)  # tensor cores of a generation; the rest belongs to the process
POWER_PULL = 0.15      # convolutions draw less than the products that the prior was made for
POWER_CARDS = ("T4",)  # whose process no other table has and whose power limits them
POWER_ARCHITECTURE = "turing"
PLAUSIBLE = 1.05    # times what the data sheet alone leaves: below it a row is of another GPU than it names
SPEED_PULL = 0.1    # of what a processor's rows say beyond core and clock

def nanoseconds_of(row):
    return float(row["batch"]) / float(row["samples_per_s"]) * 1e9


def step_of(context, row):
    stem = f"timm_{row['model']}-{'amp-fp16' if row['precision'].startswith('amp') else 'fp32'}-{row['image_size']}-inference-torch"
    found = [f for f in sorted(os.listdir(context.steps)) if f.startswith(stem)]
    return os.path.join(context.steps, found[0]) if found else None


class Rows:
    """Rows of the table that a step was captured for."""

    def __init__(self, context):
        self.rows = []
        for row in read_csv(os.path.join(context.data, TABLE)):
            path = step_of(context, row)
            if path is not None and context.sees(row["gpu"]):
                self.rows.append({**row, "ns": nanoseconds_of(row),
                                  "line": f"{path} {row['gpu']} {row['batch']} {row['precision']} 0 1 0 inference"})
        floors = {}
        for row in self.rows:
            key = self.series(row)
            floors[key] = min(floors.get(key, math.inf), row["ns"])
        for row in self.rows:
            row["host_limits"] = row["ns"] < BEYOND * floors[self.series(row)]

    @staticmethod
    def series(row):
        return tuple(row[c] for c in ("model", "image_size", "gpu", "host_cpu", "precision"))


class ByCpu:
    """One tool for each processor, whose speed is a patch of its own."""

    def __init__(self, context, path, rows):
        self.rows, self.tools, self.speed = rows, {}, {}
        for cpu in sorted({r["host_cpu"] for r in rows}):
            mine = [i for i, r in enumerate(rows) if r["host_cpu"] == cpu]
            self.tools[cpu] = (mine, Tool(context.tools + "/timing_steps", [rows[i]["line"] for i in mine], path))
            if cpu:
                said = subprocess.run([context.tools + "/timing_steps", "--host-speed", cpu], capture_output=True, check=True, text=True)
                self.speed[cpu] = float(said.stdout)

    def predict(self, patch):
        """`patch` holds host times, and "speed.CPU": what a processor's rows say beyond core and clock."""
        shared = {n: v for n, v in patch.items() if not n.startswith("speed.")}
        out = [0.0] * len(self.rows)
        for cpu, (mine, tool) in self.tools.items():
            own = {"host.speed": self.speed[cpu] * patch.get("speed." + cpu, 1.0)} if cpu else {}
            for i, value in zip(mine, tool({**shared, **own})):
                out[i] = value
        return out

    def close(self):
        for _, tool in self.tools.values():
            tool.close()


def fitted(tools, rows, used, cpus):
    names = {**START, **{"speed." + c: 1.0 for c in cpus}}

    def loss(patch):
        out = tools.predict(patch)
        error = [math.log(out[i] / rows[i]["ns"]) ** 2 for i in used]
        pull = sum((SPEED_PULL if n.startswith("speed.") else PULL) * math.log(v / names[n]) ** 2 for n, v in patch.items())
        return math.sqrt((sum(error) + pull * len(used) / 10) / len(used))

    return descend(loss, names, step=0.2, least=0.02)


def left_out(tools, rows, used, key):
    """Each row by a fit that saw no row with its value of `key`."""
    predicted = {}
    for value in sorted({rows[i][key] for i in used}):
        others = [i for i in used if rows[i][key] != value]
        if not others:
            continue
        cpus = sorted({rows[i]["host_cpu"] for i in others} - {""})
        out = tools.predict(fitted(tools, rows, others, cpus))
        predicted.update({i: out[i] for i in used if rows[i][key] == value})
    return predicted


def fastest(context, tools):
    """Times by the data sheet alone: every kernel at the full rate and bandwidth, no host. Rows below are of another GPU
    than they name."""
    classes = subprocess.run([context.tools + "/timing_steps", "--classes"], capture_output=True, check=True, text=True).stdout.split()
    ideal = {f"{c}.{what}": 1.0 for c in classes for what in ("compute", "memory")}
    none = ("forward", "backward", "autograd", "module", "library", "product", "rows", "attention", "conversion",
            "view", "launch", "step")
    return tools.predict({**ideal, **{f"host.{n}_us": 0.0 for n in none}, "kernel.floor_us": 0.0, "kernel.launch_us": 0.0,
                          "kernel.tile_prologue": 0.0, "kernel.lone_block": 1.0, "power.share": 1e3})


def fit_power(tools, rows, patch, least):
    """The energy of an operation, in FP32 and on tensor cores, of a process whose only power-capped card these rows hold."""
    used = [i for i, r in enumerate(rows) if r["gpu"] in POWER_CARDS and not r["host_limits"] and r["ns"] > PLAUSIBLE * least[i]]
    if len(used) < 5:
        return {}, None

    def loss(power):
        out = tools.predict({**patch, **power})
        error = sum(abs(math.log(out[i] / rows[i]["ns"])) for i in used) / len(used)
        return error + POWER_PULL * sum(math.log(v / POWER[n]) ** 2 for n, v in power.items())

    found = descend(loss, POWER, step=0.2, least=0.02)
    out = tools.predict({**patch, **found})
    return found, errors([out[i] for i in used], [rows[i]["ns"] for i in used])


def layer(patch):
    return {k: v for k, v in nested(patch).items() if k != "classes"}


def fit(context, folder):
    if not context.steps:
        return
    rows = Rows(context).rows
    named = [i for i, r in enumerate(rows) if r["host_limits"] and r["host_cpu"]]
    if len(named) < 10:
        print("fit-timing: host.json stays: too few rows that the host limits", flush=True)
        return
    tools = ByCpu(context, folder, rows)
    cpus = sorted({rows[i]["host_cpu"] for i in named})
    patch = fitted(tools, rows, named, cpus)
    report = []

    def add(split, predicted):
        report.append({"measure": "host-limited forward passes", "gpu": "all", "split": split,
                       **errors([predicted[i] for i in predicted], [rows[i]["ns"] for i in predicted])})

    out = tools.predict(patch)
    add("in sample, processor named", {i: out[i] for i in named})
    add("model left out", left_out(tools, rows, named, "model"))
    add("processor left out", left_out(tools, rows, named, "host_cpu"))
    unnamed = [i for i, r in enumerate(rows) if r["host_limits"] and not r["host_cpu"]]
    if unnamed:
        add("processor not named", {i: out[i] for i in unnamed})
    power, error = fit_power(tools, rows, patch, fastest(context, tools))
    if error:
        report.append({"measure": "GPU-limited forward passes", "gpu": ", ".join(POWER_CARDS), "split": "in sample", **error})
    tools.close()
    patch["host.spread"] = SPREAD
    host = {n: v for n, v in patch.items() if n.startswith("host.")}
    tree = {**header({"rows": "forward passes in evaluation mode, published with NVIDIA's DeepLearningExamples (facts)",
                      "speed_beyond_core_and_clock": {n[6:]: round(v, 2) for n, v in patch.items() if n.startswith("speed.")}},
                     report), "base": layer({**host, **{n: v for n, v in power.items() if n not in OF_ARCHITECTURE}})}
    if power:
        tree["architectures"] = {POWER_ARCHITECTURE: layer({n: power[n] for n in OF_ARCHITECTURE})}
    write_tree(os.path.join(folder, "host.json"), tree)
    print(json.dumps(tree, indent=1), flush=True)
