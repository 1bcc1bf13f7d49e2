"""Cost of all-reduces by fabric, count and size -> collectives.json.

NCCL changes protocol (LL, LL128, Simple) and algorithm (tree, ring) with the size, so that one line through all sizes misses
those of gradient buckets. Each fabric and count gets a curve of straight pieces; what lies between two counts, beyond them or
on another fabric, follows the rules of src/timing/collective/collectives.cc, repeated here only to measure their error.
"""
import bisect
import collections
import hashlib
import json
import math
import os
import re
import statistics

from .common import header, read_csv

LINK = {"A100": "NVLink 3", "V100": "NVLink 2"}  # of the two machines in the table
ONE_WAY_GB_S = {"A100": 300, "V100": 150}  # data sheet, all links of a GPU, one direction
MIB = 1 << 20
KNOTS = [k * MIB for k in (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 13, 14, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 512, 1024)]
COSTS = 1.06  # a knot goes while the loss stays below this multiple of what all knots give


def weight_of(size):
    """Between even on a logarithmic scale and even on a linear one: buckets are 1-25 MiB, the table goes to 1 GiB."""
    return size ** -0.75


def curve_over(knots, rows):
    """Times at `knots` by weighted least squares of relative errors: hat functions, so tridiagonal equations."""
    n = len(knots)
    diagonal, beside, right = [1e-30] * n, [0.0] * n, [0.0] * n
    for size, time in rows:
        i = min(max(bisect.bisect_right(knots, size) - 1, 0), n - 2)
        w = weight_of(size) / time ** 2
        b = (size - knots[i]) / (knots[i + 1] - knots[i])
        a = 1 - b
        diagonal[i] += w * a * a
        diagonal[i + 1] += w * b * b
        beside[i] += w * a * b
        right[i] += w * a * time
        right[i + 1] += w * b * time
    for i in range(1, n):
        m = beside[i - 1] / diagonal[i - 1]
        diagonal[i] -= m * beside[i - 1]
        right[i] -= m * right[i - 1]
    times = [0.0] * n
    for i in reversed(range(n)):
        times[i] = (right[i] - (beside[i] * times[i + 1] if i + 1 < n else 0)) / diagonal[i]
    return list(zip(knots, times))


def time_at(curve, size):
    i = min(max(bisect.bisect_right([k for k, _ in curve], size) - 1, 0), len(curve) - 2)
    (x0, y0), (x1, y1) = curve[i], curve[i + 1]
    return y0 + (y1 - y0) * (size - x0) / (x1 - x0)


def loss_of(curve, rows):
    return sum(weight_of(size) * (time_at(curve, size) / time - 1) ** 2 for size, time in rows)


def fit_curve(rows):
    """The fewest knots that serve about as well as all of KNOTS."""
    sizes = [size for size, _ in rows]
    knots = [k for i, k in enumerate(KNOTS) if i in (0, len(KNOTS) - 1) or k in sizes]
    bound = COSTS * loss_of(curve_over(knots, rows), rows)
    while len(knots) > 2:
        trials = []
        for i in range(1, len(knots) - 1):
            fewer = knots[:i] + knots[i + 1:]
            trials.append((loss_of(curve_over(fewer, rows), rows), fewer))
        loss, fewer = min(trials)
        if loss > bound:
            break
        knots = fewer
    return curve_over(knots, rows)


def summary(name, split, errors):
    small = [e for size, e in errors if size <= 8 * MIB]
    every = sorted(e for _, e in errors)
    return {"measure": "all-reduce", "gpu": name, "split": split, "rows": len(every),
            "mape": round(100 * statistics.mean(every), 2), "mdape": round(100 * statistics.median(every), 2),
            "p90": round(100 * every[int(0.9 * (len(every) - 1))], 2), "max": round(100 * every[-1], 1),
            "mape_1_to_8_mib": round(100 * statistics.mean(small), 2), "max_1_to_8_mib": round(100 * max(small), 1)}


def errors_of(predict, rows):
    return [(size, abs(predict(size) / time - 1)) for size, time in rows]


def held_out(size):
    """A half of the sizes, by a hash that has nothing to do with their order; the ends stay, since a curve needs them."""
    return MIB < size < 1024 * MIB and hashlib.sha256(str(size).encode()).digest()[0] % 2 == 0


def factor(ranks):
    return 2 * (ranks - 1) / ranks


def line_through(rows):
    """alpha and slope of one line, by the same weights."""
    a = b = c = d = e = 0.0
    for size, time in rows:
        w, x, y = weight_of(size), 1 / time, size / time
        a, b, c, d, e = a + w * x * x, b + w * x * y, c + w * y * y, d + w * x, e + w * y
    det = a * c - b * b
    return (d * c - e * b) / det, (a * e - b * d) / det


def tells_the_share(gpu, ranks):
    """Whether all links of a GPU carry the ring: with a switch always, in V100's cube mesh among all eight."""
    return gpu == "A100" or ranks == 8


def transfer_of(points, gpus):
    """For fabrics without rows: alpha = alpha_us + alpha_rank_us * n, and the share of the data sheet's one-way rate."""
    shares, alphas = [], []
    for (gpu, n), rows in sorted(points.items()):
        if gpu in gpus:
            alpha, slope = line_through(rows)
            alphas.append((n, alpha))
            if tells_the_share(gpu, n):
                shares.append(factor(n) / slope / 1e3 / ONE_WAY_GB_S[gpu])
    mean_n, mean_a = statistics.mean(n for n, _ in alphas), statistics.mean(a for _, a in alphas)
    rank = sum((n - mean_n) * (a - mean_a) for n, a in alphas) / sum((n - mean_n) ** 2 for n, _ in alphas)
    return {"link_share": statistics.geometric_mean(shares), "alpha_rank_us": rank, "alpha_us": mean_a - rank * mean_n}


def transferred(rule, gpu, n):
    slope = factor(n) / (rule["link_share"] * ONE_WAY_GB_S[gpu] * 1e3)
    return lambda size: rule["alpha_us"] + rule["alpha_rank_us"] * n + slope * size


def between(curves, gpu, n):
    w = math.log(n / (n - 1)) / math.log((n + 1) / (n - 1))
    return lambda size: (1 - w) * time_at(curves[gpu, n - 1], size) + w * time_at(curves[gpu, n + 1], size)


def beyond(curves, rule, gpu, n):
    low = curves[gpu, n - 1]
    return lambda size: time_at(low, size) * factor(n) / factor(n - 1) + rule["alpha_rank_us"]


def report_splits(points, curves, report):
    for (gpu, n), rows in sorted(points.items()):
        name = f"{gpu} x{n}"
        report.append(summary(name, "in sample", errors_of(lambda s: time_at(curves[gpu, n], s), rows)))
        half = fit_curve([row for row in rows if not held_out(row[0])])
        report.append(summary(name, "half of the sizes left out",
                              errors_of(lambda s: time_at(half, s), [row for row in rows if held_out(row[0])])))
        if (gpu, n - 1) in points and (gpu, n + 1) in points:
            report.append(summary(name, "count left out, from those beside it", errors_of(between(curves, gpu, n), rows)))
        elif (gpu, n - 1) in points:
            rule = transfer_of(points, [gpu])
            report.append(summary(name, "count left out, beyond the others", errors_of(beyond(curves, rule, gpu, n), rows)))
    for gpu in sorted(LINK):
        rule = transfer_of(points, [other for other in LINK if other != gpu])
        for (of, n), rows in sorted(points.items()):
            if of == gpu and tells_the_share(gpu, n):
                report.append(summary(f"{gpu} x{n}", "machine left out", errors_of(transferred(rule, gpu, n), rows)))


UP_TO = (8, 32, 128, 1024)  # MiB: each range has a width of its own, since knots are far apart at small sizes


def ninety(errors):
    """What nine in ten are below."""
    return sorted(errors)[round(0.9 * (len(errors) - 1))]


def spreads_of(rows):
    """[[up to MiB, 90 % half-width], ...] by sizes that the curve has not seen."""
    half = fit_curve([row for row in rows if not held_out(row[0])])
    errors = errors_of(lambda s: time_at(half, s), [row for row in rows if held_out(row[0])])
    widths, above = [], 0
    for most in UP_TO:
        widths.append([most, round(ninety([e for size, e in errors if above < size / MIB <= most]), 4)])
        above = most
    return widths


def between_spread(points, curves):
    """90 % half-width of a count between two others where a switch joins all: A100, sizes of buckets."""
    errors = []
    for (gpu, n), rows in sorted(points.items()):
        if gpu == "A100" and (gpu, n - 1) in points and (gpu, n + 1) in points:
            errors += [e for size, e in errors_of(between(curves, gpu, n), rows) if size <= 32 * MIB]
    return float(f"{ninety(errors):.2g}")


# The wait for the slowest rank, by the fit to both published tables that `stoker-accuracy --only time/scaling-lambda` prints.
STRAGGLER = {"straggler_us": 2730, "straggler_growth": 0.5}

PROVENANCE = {"straggler": "published scaling tables of PyTorch, NVIDIA and Lambda",
              "rows": "vTrain (MIT, VIA Research Group at KAIST): nccl-tests style tables of one A100 and one V100 machine"}


def fit(context, folder):
    """Writes collectives.json into `folder`."""
    points = collections.defaultdict(list)
    for r in read_csv(context.data + "/allreduce.csv"):
        time = (float(r["out_of_place_us"]) + float(r["in_place_us"])) / 2
        points[r["machine_gpu"], int(r["gpus"])].append((int(r["bytes"]), time))
    for rows in points.values():
        rows.sort()
    curves = {key: fit_curve(rows) for key, rows in points.items()}
    report = []
    report_splits(points, curves, report)
    fits = [{"fabric": LINK[gpu], "ranks": n, "spread": spreads_of(points[gpu, n]),
             "curve": [[size // MIB, round(time, 1)] for size, time in curve]} for (gpu, n), curve in sorted(curves.items())]
    rule = {name: float(f"{value:.3g}") for name, value in transfer_of(points, list(LINK)).items()}
    base = {**rule, **STRAGGLER, "between_spread": between_spread(points, curves)}
    text = json.dumps({**header(PROVENANCE, report), "base": {"collective": base}, "all_reduce": fits}, indent=1)
    lists = r'"(curve|spread)": \[.*?\]\s*\]'
    text = re.sub(lists, lambda m: re.sub(r"\s+", "", m[0]).replace(",[", ", [").replace(":[", ": ["), text, flags=re.S)
    with open(os.path.join(folder, "collectives.json"), "w") as out:
        out.write(text + "\n")
