"""Whole steps as sums over kernels, so that class efficiencies can be fitted by gradient.

The costs come from timing_steps, once, with all efficiencies 1; a step's time is then
    host + sum over kernels (floor + launch + transposes / e_t + max(compute / e_c, memory / e_m)),
which is what the C++ rules do with those efficiencies. Only kernels whose rule picks an algorithm by its efficiency
(Winograd in FP32) do not fit this form.
"""
import subprocess

import numpy

from .common import Tool


def class_names(context):
    return subprocess.run([context.tools + "/timing_steps", "--classes"], check=True, capture_output=True,
                          text=True).stdout.split()


def read_kernels(tool, rows, patch):
    """[(time, exposed host, parameters, records of (class, launches, time, compute, memory))], ns."""
    tool.send(patch, "kernels")
    steps = []
    for _ in range(rows):
        count, time, host, parameters = tool.doubles(4)
        steps.append((time, host, parameters, numpy.array(tool.doubles(5 * int(count))).reshape(-1, 5)))
    return steps


class KernelTable:
    """Kernels of many steps; `times` in ns. `predict(x)` and its gradient, x = logarithms of the parameters."""

    def __init__(self, context, lines, coefficients):
        tool = Tool(context.tools + "/timing_steps", lines, coefficients)
        names = class_names(context)
        bare = {**{f"{c}.{kind}": 1.0 for c in names for kind in ("compute", "memory")},
                "kernel.floor_us": 0, "kernel.launch_us": 0}
        plain = read_kernels(tool, len(lines), bare)
        untransposed = read_kernels(tool, len(lines), {**bare, "layout_transpose.memory": 1e9})
        tool.close()
        self.rows = len(lines)
        self.parameters = numpy.array([s[2] for s in plain])
        tables = []
        for row, (with_t, without_t) in enumerate(zip(plain, untransposed)):
            k, transposes = with_t[3], with_t[3][:, 2] - without_t[3][:, 2]
            columns = [numpy.full(len(k), row), k[:, 0], numpy.ones(len(k)), k[:, 1] - 1, transposes, k[:, 3], k[:, 4]]
            tables.append(merged(numpy.column_stack(columns)))
        table = numpy.concatenate(tables)
        self.step, cost_class = table[:, 0].astype(int), table[:, 1].astype(int)
        self.calls, self.launches, self.transposes, self.compute, self.memory = table[:, 2:].T
        used = sorted(set(cost_class))
        self.names = [f"{names[c]}.compute" for c in used] + [f"{names[c]}.memory" for c in used]
        self.names += ["layout_transpose.memory", "kernel.floor_us", "kernel.launch_us"]
        self.at = {name: i for i, name in enumerate(self.names)}
        place = {c: i for i, c in enumerate(used)}
        self.of_compute = numpy.array([place[c] for c in cost_class])
        self.of_memory = self.of_compute + len(used)

    def predict(self, x, gradient=False):
        """ns of each step; with `gradient` also a function that turns d loss / d time into d loss / d x."""
        compute = self.compute * numpy.exp(-x[self.of_compute])
        memory = self.memory * numpy.exp(-x[self.of_memory])
        transposes = self.transposes * numpy.exp(-x[self.at["layout_transpose.memory"]])
        floors = self.calls * numpy.exp(x[self.at["kernel.floor_us"]]) * 1e3
        launches = self.launches * numpy.exp(x[self.at["kernel.launch_us"]]) * 1e3
        time = numpy.bincount(self.step, numpy.maximum(compute, memory) + transposes + floors + launches, self.rows)
        if not gradient:
            return time

        def back(slope):
            at_kernel, bound = slope[self.step], compute >= memory
            g = -numpy.bincount(self.of_compute, at_kernel * compute * bound, len(x))
            g -= numpy.bincount(self.of_memory, at_kernel * memory * ~bound, len(x))
            g[self.at["layout_transpose.memory"]] -= (at_kernel * transposes).sum()
            g[self.at["kernel.floor_us"]] += (at_kernel * floors).sum()
            g[self.at["kernel.launch_us"]] += (at_kernel * launches).sum()
            return g
        return time, back


def merged(table):
    """Kernels of one step and class that are bound the same way at any likely efficiency are added up."""
    compute, memory = table[:, 5], table[:, 6]
    kind = numpy.where(compute < 0.02 * memory, 1, numpy.where(memory < 0.02 * compute, 2, 0))
    group = numpy.where(kind > 0, table[:, 1] * 3 + kind, 1e6 + numpy.arange(len(table)))
    _, first, place = numpy.unique(group, return_index=True, return_inverse=True)
    out = table[first].copy()
    for column in range(2, 7):
        out[:, column] = numpy.bincount(place, table[:, column], len(first))
    return out


def minimise(function, start, steps=400):
    """Gradient descent with L-BFGS's two loops; `function` gives value and gradient."""
    x, (value, slope) = start.copy(), function(start)
    history = []
    for _ in range(steps):
        direction, alphas = slope.copy(), []
        for s, y, rho in reversed(history):
            alphas.append(rho * s.dot(direction))
            direction -= alphas[-1] * y
        if history:
            s, y, _ = history[-1]
            direction *= s.dot(y) / y.dot(y)
        else:
            direction /= max(1e-12, numpy.abs(direction).max()) * 5
        for (s, y, rho), alpha in zip(history, reversed(alphas)):
            direction += s * (alpha - rho * y.dot(direction))
        length, descent = 1.0, slope.dot(direction)
        if descent <= 0:
            history = []
            direction, descent = slope, slope.dot(slope)
        while length > 1e-10:
            trial = x - length * direction
            trial_value, trial_slope = function(trial)
            if trial_value <= value - 1e-4 * length * descent:
                break
            length /= 2
        else:
            break
        step, change = trial - x, trial_slope - slope
        if step.dot(change) > 1e-12:
            history = (history + [(step, change, 1 / step.dot(change))])[-12:]
        done = value - trial_value < 1e-7
        x, value, slope = trial, trial_value, trial_slope
        if done:
            break
    return x


SMALL = 0.03  # below this relative error the loss is quadratic, above it linear: a few odd rows do not steer it


def fit_efficiencies(table, times, used, start, pull):
    """{name: value} that minimises the mean error of logarithms over rows `used`, pulled towards `start` with weight
    `pull` (ridge). `start` names what is fitted; all else that the table knows keeps start's value too."""
    names = table.names
    x0 = numpy.log([start[n] for n in names])
    mask = numpy.zeros(len(times), bool)
    mask[list(used)] = True
    times = numpy.asarray(times)

    def loss(x):
        predicted, back = table.predict(x, gradient=True)
        error = numpy.log(predicted / times)
        size = numpy.sqrt(error * error + SMALL * SMALL)
        off = x - x0
        slope = back(numpy.where(mask, error / size / predicted, 0) / mask.sum())
        return size[mask].mean() + pull * off.dot(off), slope + 2 * pull * off
    x = minimise(loss, x0)
    return {n: float(v) for n, v in zip(names, numpy.exp(x))}
