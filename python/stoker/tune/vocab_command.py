"""stoker vocab TEXT...: what a vocabulary, a sequence length and a way to batch keep of a text, and what they cost."""

from __future__ import annotations

import gzip
import json
import shutil
import sys
import textwrap
import zlib

from .. import binary
from ..arguments import Parser
from ..plain import counted, printable_lines
from ..version import VERSION
from . import words

EXIT_BAD_INPUT = 3
LEAST = (1, 2, 3, 5, 10, 20, 50)
MERGES = (500, 1000, 2000, 4000, 8000)
DROPPED = (10, 50, 100)
SHARES = (0.5, 0.9, 0.95, 0.99, 1.0)
BYTES_A_PARAMETER = 16  # fp32: weight, gradient, two moments of Adam
BYTES_A_LOGIT = 12  # fp32: logits, their log-softmax, its gradient
FLOPS_A_LOGIT = 6  # a multiplication and an addition for each unit, forward and two backward


def parser():
    p = Parser(prog="stoker vocab", description="Says how large a vocabulary and how long a sequence a text needs, and what each costs.")
    p.add_argument("texts", metavar="TEXT", nargs="+", help="plain or gzip text, one sample a line")
    p.add_argument("--least", metavar="N", type=_numbers, default=LEAST,
                   help="words that occur at least so often: 1,2,5 (default: %(default)s)")
    p.add_argument("--drop", metavar="N", type=_numbers, default=DROPPED, help="most frequent words to leave out (default: %(default)s)")
    p.add_argument("--merges", metavar="N", type=_numbers, default=MERGES, help="merges of byte-pair encoding (default: %(default)s)")
    p.add_argument("--length", metavar="N", type=_numbers, help="lengths to cut at (default: those that keep 50, 90, 95, 99, 100 %% whole)")
    p.add_argument("--batch", metavar="N", type=int, default=64, help="lines of a batch (default: %(default)s)")
    p.add_argument("--units", metavar="N", type=int, default=512, help="width of embedding and output layer (default: %(default)s)")
    p.add_argument("--tied", action="store_true", help="both share their weights")
    p.add_argument("--case", action="store_true", help="keep upper and lower case apart")
    p.add_argument("--model", metavar="MODEL", help="captured model with dimensions for both, to forecast its step; needs --gpu")
    p.add_argument("--gpu", metavar="GPU", help="of the forecasts")
    p.add_argument("--vocab-dim", metavar="NAME", default="vocab", help="the model's dimension (default: %(default)s)")
    p.add_argument("--length-dim", metavar="NAME", default="seq_len", help="the model's dimension (default: %(default)s)")
    p.add_argument("--json", action="store_true", help="as JSON on standard output")
    return p


def _numbers(text: str) -> tuple:
    return tuple(sorted({int(word) for word in text.split(",")}))


def run(arguments: list) -> int:
    o = parser().parse_args(arguments)
    try:
        if min([o.batch, o.units, *o.least, *o.merges, *o.drop, *(o.length or [1])]) < 1 or bool(o.model) != bool(o.gpu):
            sys.stderr.write("stoker: numbers are 1 or more, and --model and --gpu belong together\n")
            return 2
        found = look_at(o)
    except binary.StokerError as error:
        sys.stderr.write(f"stoker: {printable_lines(getattr(error, 'as_command', error))}\n")
        return EXIT_BAD_INPUT
    print(json.dumps(found, indent=2) if o.json else printable_lines(text_of(found, o)))
    return 0


def _lines_of(path: str):
    """The lines of a text; what cannot be read is named, with the cure."""
    try:
        yield from words.lines_of(path)
    except FileNotFoundError:
        raise binary.StokerError(f"{path}: there is no such file; give texts, plain or .gz, one sample a line") from None
    except IsADirectoryError:
        raise binary.StokerError(f"{path}: is a folder; name the texts in it: stoker vocab {path.rstrip('/')}/*.txt") from None
    except (gzip.BadGzipFile, EOFError, zlib.error):
        raise binary.StokerError(f"{path}: is no whole gzip file; unpack it, or copy it again") from None
    except OSError as error:
        raise binary.StokerError(f"{path}: cannot be read: {error.strerror or error}") from None


def look_at(o) -> dict:
    """Everything that is said, as numbers."""
    counts, lengths = words.counts_of((line for path in o.texts for line in _lines_of(path)), lower=not o.case)
    lengths = [length for length in lengths if length]
    if not lengths:
        raise binary.StokerError(f"{o.texts[0]}: has no words")
    at = o.length or tuple(dict.fromkeys(_quantile(lengths, share) for share in SHARES))
    longest = at[-1]
    sizes = [{"least": least, "size": kept + 2, "covered": share, **_cost(o, kept + 2, longest)}
             for least, kept, share in words.thresholds(counts, o.least)]
    pieces = [{"merges": merges, "size": size + 2, "tokens": tokens, "tokens_a_word": tokens / sum(counts.values()),
               **_cost(o, size + 2, longest)} for merges, size, tokens in words.bpe_sizes(counts, o.merges)]
    tails = [{"length": most, "lines_cut": lines, "tokens_cut": tokens, "padding": words.padding(lengths, o.batch, most),
              **_length_cost(o, most, sizes)} for most, lines, tokens in words.cut_at(lengths, at)]
    head = {"schema": "stoker-vocab-1", "stoker": VERSION, "format": "stoker-vocab", "format_version": 1}
    return {**head, "lines": len(lengths), "words": sum(counts.values()), "distinct": len(counts),
            "by_least_count": sizes, "without_most_frequent": [{"dropped": n, "words_lost": share}
                                                               for n, share in words.most_common_share(counts, o.drop)],
            "byte_pairs": pieces, "by_length": tails}


def _quantile(lengths: list, share: float) -> int:
    ordered = sorted(lengths)
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _cost(o, size: int, length: int) -> dict:
    """Bytes and arithmetic of embedding, output layer and logits, from their shapes; with a model, the forecast of its step."""
    cost = {"weights_bytes": size * o.units * (1 if o.tied else 2) * BYTES_A_PARAMETER,
            "logits_bytes": o.batch * length * size * BYTES_A_LOGIT,
            "gflop_a_step": o.batch * length * size * o.units * FLOPS_A_LOGIT / 1e9}
    return {**cost, **_forecast(o, {o.vocab_dim: size, o.length_dim: length})}


def _length_cost(o, length: int, sizes: list) -> dict:
    return _forecast(o, {o.vocab_dim: sizes[0]["size"], o.length_dim: length})


def _forecast(o, dimensions: dict) -> dict:
    if not o.model:
        return {}
    found = binary.predict(o.model, o.gpu, batch=o.batch, dim=dimensions)
    return {"forecast": {"step_ms": found["time"]["step_ms"]["value"], "device_peak_bytes": found["memory"]["device_peak_bytes"]["value"],
                         "fits": found["memory"]["fits"]}}


def text_of(found: dict, o) -> str:
    lines = [f"{counted(found['lines'], 'line')}, {counted(found['words'], 'word')}, {found['distinct']:,} of them distinct", ""]
    forecast = ["step", "memory"] if o.model else []
    rows = [["occurs", "size", "covers", "weights", "logits", "GFLOP/step", *forecast]]
    rows += [[f">= {r['least']}", f"{r['size']:,}", _percent(r["covered"]), *_costs(r)] for r in found["by_least_count"]]
    lines += ["Whole words, rare ones left out (two numbers more for padding and unknown words)", *_table(rows), ""]
    rows = [["merges", "size", "tokens/word", "weights", "logits", "GFLOP/step", *forecast]]
    rows += [[f"{r['merges']:,}", f"{r['size']:,}", f"{r['tokens_a_word']:.2f}", *_costs(r)] for r in found["byte_pairs"]]
    rows = [row for i, row in enumerate(rows) if row not in rows[:i]]  # a short text has no more pairs to merge
    lines += ["Byte pairs", *_table(rows), ""]
    lines += ["Most frequent words left out: " + ", ".join(f"{r['dropped']} take {_percent(r['words_lost'])} of the text"
                                                            for r in found["without_most_frequent"]), ""]
    rows = [["length", "lines cut", "words cut", "padding: fixed", "random", "buckets", "sorted", *forecast]]
    rows += [[str(r["length"]), _percent(r["lines_cut"]), _percent(r["tokens_cut"]),
              *(_percent(r["padding"][way]) for way in ("fixed", "random", "buckets", "sorted")), *_forecast_cells(r)]
             for r in found["by_length"]]
    lines += [f"Sequence length, in words, and padding of batches of {o.batch}", *_table(rows), ""]
    lines += [f"Weights are of embedding and output layer with {o.units} units{', tied' if o.tied else ''}, fp32 with Adam "
              f"({BYTES_A_PARAMETER} bytes each); logits of {o.batch} lines of {found['by_length'][-1]['length']} words with "
              f"their log-softmax and gradient ({BYTES_A_LOGIT} bytes each): from shapes, not measured."]
    return "\n".join(line for long in lines for line in _wrapped(long))


def _columns() -> int | None:
    """The width of the terminal that is written to; None: it is none."""
    return max(40, shutil.get_terminal_size().columns) if sys.stdout.isatty() else None


def _wrapped(line: str) -> list:
    """A sentence in as many lines as the terminal needs; rows of a table stay one."""
    columns = _columns()
    return [line] if columns is None or line.startswith("  ") or len(line) <= columns else textwrap.wrap(line, columns)


def _costs(row: dict) -> list:
    return [_size(row["weights_bytes"]), _size(row["logits_bytes"]), f"{row['gflop_a_step']:,.1f}", *_forecast_cells(row)]


def _forecast_cells(row: dict) -> list:
    f = row.get("forecast")
    return [f"{f['step_ms']:.3g} ms", _size(f["device_peak_bytes"]) + ("" if f["fits"] else ", does not fit")] if f else []


def _size(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.1f} GiB"


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"


def _table(rows: list) -> list:
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    most = _columns()
    while most is not None and len(widths) > 3 and sum(widths) + 2 * len(widths) > most:  # the last is kept, as what all lead to
        del widths[-2]
        rows = [[*row[:-2], row[-1]] for row in rows]
    return ["  " + "  ".join(cell.rjust(width) for cell, width in zip(row, widths)) for row in rows]
