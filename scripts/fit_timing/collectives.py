"""Cost of all-reduces by fabric and count -> collectives.json."""
import collections
import os
import statistics

from .common import header, read_csv, write_tree


def fit_all_reduce(data, report):
    """alpha-beta by least squares of relative errors, sizes weighted evenly on a logarithmic scale."""
    link = {"A100": "NVLink 3", "V100": "NVLink 2"}
    points = collections.defaultdict(list)
    for r in read_csv(data + "/allreduce.csv"):
        time = (float(r["out_of_place_us"]) + float(r["in_place_us"])) / 2
        points[r["machine_gpu"], int(r["gpus"])].append((int(r["bytes"]), time))
    fits = []
    for (gpu, ranks), rows in sorted(points.items()):
        a = b = c = d = e = 0.0
        for size, time in rows:
            weight, x, y = 1 / size, 1 / time, size / time
            a, b, c = a + weight * x * x, b + weight * x * y, c + weight * y * y
            d, e = d + weight * x, e + weight * y
        det = a * c - b * b
        alpha, slope = (d * c - e * b) / det, (a * e - b * d) / det
        relative = sorted((abs((alpha + slope * s) / t - 1), s) for s, t in rows)
        small = [r for r, s in relative if s <= 8 << 20]
        p90_small = sorted(small)[int(0.9 * (len(small) - 1))]
        mean = 100 * sum(r for r, _ in relative) / len(relative)
        fits.append({"fabric": link[gpu], "ranks": ranks, "alpha_us": round(alpha, 2),
                     "bus_gb_s": round(2 * (ranks - 1) / ranks / slope / 1e3, 2),
                     "spread": round(max(0.05, p90_small), 3)})
        report.append({"measure": "all-reduce", "gpu": f"{gpu} x{ranks}", "split": "in sample", "rows": len(rows),
                       "mape": round(mean, 2), "mdape": round(100 * statistics.median(r for r, _ in relative), 2),
                       "p90": round(100 * relative[int(0.9 * (len(relative) - 1))][0], 2),
                       "mape_1_to_8_mib": round(100 * sum(small) / len(small), 1)})
    return fits


PROVENANCE = {"rows": "vTrain (MIT, VIA Research Group at KAIST): nccl-tests style tables of one A100 and one V100 machine"}


def fit(context, folder):
    """Writes collectives.json into `folder`."""
    report = []
    fits = fit_all_reduce(context.data, report)
    write_tree(os.path.join(folder, "collectives.json"), {**header(PROVENANCE, report), "all_reduce": fits})
