"""Answers as objects: what JSON has under a name is an attribute that completes, and a dict as ever."""

from __future__ import annotations

import difflib
import html
from collections.abc import Iterator
from typing import Any

from .plain import counted, percent

FIGURE = frozenset(("value", "low", "high", "basis"))


def number(value: float) -> str:
    """Three significant digits, commas from a thousand on: as the command writes figures."""
    size = abs(value)
    if size >= 999.5:  # each border is where fewer digits behind the point still make three in all
        step = 10 ** max(0, len(str(int(size))) - 3)
        return f"{round(value / step) * step:,.0f}"
    return f"{value:.0f}" if size >= 99.95 else f"{value:.1f}" if size >= 9.995 else f"{value:.2f}"


class Part(dict):
    """An object of the JSON: part["name"] is part.name, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            known = [name for name in dir(self) if not name.startswith("_") and name not in dir(dict)]
            near = difflib.get_close_matches(name, known, 1)
            hint = f"; did you mean {near[0]}?" if near else ""
            raise AttributeError(f"this answer has no {name}{hint} (it has {', '.join(known)})") from None

    def __dir__(self) -> Iterator[str]:
        return iter(sorted({*super().__dir__(), *(key for key in self if key.isidentifier())}))

    def to_dict(self) -> dict:
        """Plain dicts and lists, as json.loads gives them."""
        return {key: plain(value) for key, value in self.items()}


class Figure(Part):
    """A forecast number: value, its 90 % band low to high, and what it rests on (basis). float() of it is the value."""

    def __float__(self) -> float:
        return float(self["value"])

    def __repr__(self) -> str:
        return f"{number(self['value'])} [{number(self['low'])}-{number(self['high'])}]"


class Answer(Part):
    """What every answer has; `rests_on`, `assumed` and `excluded` say how far it holds."""

    @property
    def fits(self) -> bool:
        """Whether the forecast, its error left aside, fits the device's memory."""
        return bool(self["memory"]["fits"])

    @property
    def verdict(self) -> str:
        """"FITS", "RISKY" or "DOES NOT FIT": the band considered."""
        return str(self["memory"]["verdict"])

    @property
    def throughput(self) -> Figure:
        """Samples a second of the whole job."""
        return self["throughput_samples_per_s"]

    def _settings(self) -> str:
        s = self["settings"]
        gpus = f"{s['gpus']} GPU{'s' if s['gpus'] > 1 else ''}, "
        together = f" ({s['global_batch']} global)" if s["global_batch"] != s["batch"] else ""
        return f"{gpus}batch {s['batch']}{together}, {s['precision']}"

    def _summary(self) -> str:
        if not self.fits:
            return f"{self.verdict}: needs {_gib(self['memory']['device_peak_bytes'])} of {self['memory']['usable_bytes'] / 2**30:.1f} GiB"
        return f"{self.throughput!r} samples/s, limited by {self['limiter']['what']}"

    def _rows(self) -> list[tuple[str, str, str]]:
        """(name, figure, what it rests on)"""
        memory = self["memory"]["device_peak_bytes"]
        rows = [("memory per GPU", f"{_gib(memory)} of {self['memory']['usable_bytes'] / 2**30:.1f} GiB, {self.verdict}",
                 memory["basis"])]
        if self.fits:
            rows += [("samples/s", repr(self.throughput), self.throughput["basis"]),
                     ("step", f"{self['time']['step_ms']!r} ms", self["time"]["step_ms"]["basis"]),
                     ("GPU busy", percent(self["gpu_utilization"]["value"]), self["gpu_utilization"]["basis"]),
                     ("limited by", self["limiter"]["what"], "")]
        for key, name in (("epoch_s", "epoch, s"), ("epoch_cost", "cost of an epoch")):
            if self.fits and key in self:
                rows.append((name, repr(self[key]), self[key]["basis"]))
        return rows

    def __repr__(self) -> str:
        return f"<stoker.{type(self).__name__} of {self['model']} on {self['gpu']}: {self._settings()}: {self._summary()}>"

    def _repr_html_(self) -> str:
        """For notebooks. All text is escaped."""
        lines = "".join(f"<tr><td>{html.escape(name)}</td><td><b>{html.escape(figure)}</b></td>"
                        f"<td style='opacity:.7'>{html.escape(basis)}</td></tr>" for name, figure, basis in self._rows())
        title = html.escape(f"{self['model']} on {self['gpu']}: {self._settings()}")
        return f"<div><b>{title}</b><table>{lines}</table>{self._after_table()}</div>"

    def _after_table(self) -> str:
        return ""


class Prediction(Answer):
    """The answer of stoker.predict."""


class Plan(Answer):
    """The answer of stoker.plan: the best settings, and under `plan` the others."""

    @property
    def next(self) -> list[Part]:
        """What to do next, best first: `what`, `speed_gain`, `price_change`."""
        return self["plan"]["next"]

    @property
    def by_gpus(self) -> list[Part]:
        """The best settings of each number of GPUs."""
        return self["plan"]["by_gpus"]

    def _after_table(self) -> str:
        items = "".join(f"<li>{html.escape(advice['what'])}</li>" for advice in self.next[:4])
        return f"Next:<ol>{items}</ol>" if items else ""


class Comparison(Part):
    """Several answers side by side: kinds of GPU (`gpus`), settings (`table`) or numbers of GPUs (`scaling`)."""

    def _rows(self) -> list[list[str]]:
        """A heading, and a row for each answer."""
        if "scaling" in self:
            points = [[str(p["gpus"]), _rate(p), percent(p["efficiency"]) if "efficiency" in p else "-"]
                      for p in self["scaling"]["points"]]
            return [["GPUs", "samples/s", "of ideal"], *points]
        if "table" in self:
            named = [name for name in ("batch", "seq_len", "precision") if any(name in row for row in self["table"])]
            return [[*named, "memory", "samples/s"], *([str(row.get(name, "")) for name in named] + _memory_and_rate(row.get("forecast"))
                                                       for row in self["table"])]
        return [["GPU", "GPUs", "batch", "precision", "memory", "samples/s"],
                *([row["gpu"], *(str(row["settings"][name]) for name in ("gpus", "batch", "precision")), *_memory_and_rate(row)]
                  for row in self.get("gpus", []))]

    def __repr__(self) -> str:
        _, *rows = self._rows()
        rate = 1 if "scaling" in self else -1
        return f"<stoker.Comparison of {self['model']}: {'; '.join(f'{row[0]}: {row[rate]} samples/s' for row in rows)}>"

    def _repr_html_(self) -> str:
        """For notebooks. All text is escaped."""
        head, *rows = self._rows()
        return f"<div><b>{html.escape(str(self['model']))}</b>{_table(head, rows)}</div>"


class Explanation(Part):
    """The answer of stoker.explain: of a memory snapshot `live`, `why`, `advice` ...; of a watched run `verdict`,
    `findings`, `job` ..."""

    def _lines(self) -> list[str]:
        """The answer in sentences, the most important first."""
        if "verdict" in self:
            return [str(self["verdict"]), *(f"{one['name']}: {one['cure']}" for one in self.get("findings", []))]
        held = self.get("live") or self  # of a snapshot what one moment held, of a profile its sums
        lines = [f"{name.removesuffix('_bytes').replace('_', ' ')} {size(value)}" for name, value in held.items()
                 if name.endswith("_bytes") and isinstance(value, (int, float)) and value]
        return [", ".join(lines), *map(str, self.get("why", [])), *map(str, self.get("advice", []))]

    def __repr__(self) -> str:
        return f"<stoker.Explanation: {self._lines()[0]}>"

    def _repr_html_(self) -> str:
        """For notebooks. All text is escaped."""
        first, *others = self._lines()
        return f"<div><b>{html.escape(first)}</b><ul>{''.join(f'<li>{html.escape(line)}</li>' for line in others)}</ul></div>"


class Study(Part):
    """The answer of stoker.read_study: `axes`, `trials`, `counts`, and under `findings` what they teach."""

    MOST_ROWS = 50

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {state.replace('_', ' ')}" for state, count in self["counts"].items())
        name = f"{self['name']} " if self["name"] else ""
        return f"<stoker.Study {name}of {counted(len(self['trials']), 'trial')} over {', '.join(self['axes'])}: {counts}>"

    def _repr_html_(self) -> str:
        """For notebooks. All text is escaped."""
        metrics = list(dict.fromkeys(name for trial in self["trials"] for name in trial["metrics"]))
        rows = []
        for trial in self["trials"][:self.MOST_ROWS]:
            figures = [trial["metrics"].get(name) for name in metrics]
            cells = [trial["trial"], *(trial["values"][axis] for axis in self["axes"]), trial["state"],
                     *("-" if value is None else f"{value:.4g}" for value in figures)]
            rows.append(list(map(str, cells)))
        left = len(self["trials"]) - len(rows)
        more = f"<div>and {left} more</div>" if left > 0 else ""
        return f"<div><b>{html.escape(repr(self)[1:-1])}</b>{_table(['trial', *self['axes'], 'state', *metrics], rows)}{more}</div>"


def size(value: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if value < (1024 if unit == "B" else 1023.95):  # what rounds to 1024.0 is written in the next unit
            return f"{value:.0f} B" if unit == "B" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.2f} GiB"


def _table(head: list[str], rows: list[list[str]]) -> str:
    """Markup of a table whose text is escaped."""
    def line(cells: list[str], tag: str) -> str:
        return "<tr>" + "".join(f"<{tag}>{html.escape(cell)}</{tag}>" for cell in cells) + "</tr>"

    return f"<table>{line(head, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


def _rate(one: dict) -> str:
    figure = one.get("throughput_samples_per_s")
    return repr(figure) if figure and one.get("fits", True) else "-"


def _memory_and_rate(one: dict | None) -> list[str]:
    """What a row says of an answer; None: the settings were refused."""
    if not one:
        return ["refused", "-"]
    memory = one["memory"]
    fits = f"{_gib(memory['device_peak_bytes'])} of {memory['usable_bytes'] / 2**30:.1f} GiB, {memory['verdict']}"
    return [fits, _rate({**one, "fits": memory["fits"]})]


def _gib(figure: dict) -> str:
    return f"{figure['value'] / 2**30:.2f} GiB [{figure['low'] / 2**30:.2f}-{figure['high'] / 2**30:.2f}]"


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, list) else value


def parts(value: Any) -> Any:
    """JSON with its objects as parts, and its figures as figures."""
    if isinstance(value, dict):
        kind = Figure if value.keys() == FIGURE else Part
        return kind({key: parts(one) for key, one in value.items()})
    return [parts(one) for one in value] if isinstance(value, list) else value


def _cell(name: str, value: Any) -> str:
    if value is None:
        return "-"
    return size(value) if name.endswith("_bytes") else f"{value:g}" if isinstance(value, float) else str(value)


class Table(list):
    """What is known of GPUs, machines or models: parts, which a notebook shows as a table."""

    def __init__(self, rows: list, shown: dict[str, str]):
        super().__init__(rows)
        self._shown = shown  # name -> heading

    def _cells(self) -> list[list[str]]:
        return [[_cell(name, row.get(name)) for name in self._shown] for row in self]

    def __repr__(self) -> str:
        lines = [list(self._shown.values()), *self._cells()]
        widths = [max(map(len, column)) for column in zip(*lines)]
        return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip() for line in lines)

    def _repr_html_(self) -> str:
        """For notebooks. All text is escaped."""
        return _table(list(self._shown.values()), self._cells())


def answer(kind: type[Answer], document: dict) -> Answer | Comparison | Part:
    """A job's answer, or a comparison where several stand side by side."""
    found = parts(document)
    if "settings" in document and "memory" in document and "limiter" in document:
        return kind(found)
    return Comparison(found) if document.keys() & {"gpus", "table", "scaling"} else found
