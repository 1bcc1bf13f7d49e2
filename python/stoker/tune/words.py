"""Vocabulary and length of a text, before anything is trained: how much each choice keeps, and what it costs."""

from __future__ import annotations

import collections
import gzip
import heapq
import re
import unicodedata

WORDS = re.compile(r"\w+|[^\w\s]")


def lines_of(path: str):
    """Lines of a plain or gzip text file; bytes that are no UTF-8 are replaced."""
    with (gzip.open if str(path).endswith(".gz") else open)(path, "rt", encoding="utf-8", errors="replace") as file:
        yield from file


def words_of(line: str, lower: bool) -> list:
    line = unicodedata.normalize("NFC", line)
    return WORDS.findall(line.lower() if lower else line)


def counts_of(lines, lower=True) -> tuple:
    """How often each word occurs, and the length of each line in words."""
    counts: collections.Counter = collections.Counter()
    lengths = []
    for line in lines:
        words = words_of(line, lower)
        counts.update(words)
        lengths.append(len(words))
    return counts, lengths


def thresholds(counts, at) -> list:
    """For each least number of occurrences: (threshold, words that are kept, share of all occurrences that they are)."""
    occurrences = sum(counts.values())
    ordered = sorted(counts.values(), reverse=True)
    rows = []
    for least in at:
        kept = [count for count in ordered if count >= least]
        rows.append((least, len(kept), sum(kept) / occurrences if occurrences else 0.0))
    return rows


def most_common_share(counts, dropped) -> list:
    """For each number of most frequent words that are left out: (number, share of occurrences that go with them)."""
    occurrences = sum(counts.values()) or 1
    ordered = sorted(counts.values(), reverse=True)
    return [(n, sum(ordered[:n]) / occurrences) for n in dropped]


def bpe_sizes(counts, merges) -> list:
    """Byte-pair encoding learnt on word counts: for each number of merges (merges, vocabulary, tokens of the whole text).

    Characters of a word and an end sign are the first tokens; each merge joins the pair that occurs most often, of equals the
    first in the alphabet (Sennrich et al. 2016).
    """
    words = [(list(word[:-1]) + [word[-1] + "</w>"], count) for word, count in counts.items() if word]
    pairs: collections.Counter = collections.Counter()
    where = collections.defaultdict(set)
    for i, (symbols, count) in enumerate(words):
        for pair in zip(symbols, symbols[1:]):
            pairs[pair] += count
            where[pair].add(i)
    characters = {symbol for symbols, _ in words for symbol in symbols}
    tokens = sum(len(symbols) * count for symbols, count in words)
    heap = [(-count, pair) for pair, count in pairs.items()]
    heapq.heapify(heap)
    rows, done = [], 0
    for target in sorted(merges):
        while done < target and heap:
            negative, pair = heapq.heappop(heap)
            if pairs.get(pair, 0) != -negative:
                continue  # its count has changed since it was put there
            if negative == 0:
                break
            changed, saved = _merge(pair, words, pairs, where)
            tokens -= saved
            done += 1
            for other in changed:
                if pairs.get(other, 0) > 0:
                    heapq.heappush(heap, (-pairs[other], other))
        rows.append((done, len(characters) + done, tokens))
    return rows


def _merge(pair, words, pairs, where) -> tuple:
    """Joins a pair everywhere: the pairs whose counts changed, and how many tokens fewer there are."""
    changed: set = set()
    saved = 0
    for i in sorted(where.pop(pair, ())):
        symbols, count = words[i]
        for old in zip(symbols, symbols[1:]):
            pairs[old] -= count
            changed.add(old)
        joined, at = [], 0
        while at < len(symbols):
            if at + 1 < len(symbols) and (symbols[at], symbols[at + 1]) == pair:
                joined.append(symbols[at] + symbols[at + 1])
                at += 2
            else:
                joined.append(symbols[at])
                at += 1
        words[i] = (joined, count)
        saved += (len(symbols) - len(joined)) * count
        for new in zip(joined, joined[1:]):
            pairs[new] += count
            where[new].add(i)
            changed.add(new)
    pairs.pop(pair, None)
    changed.discard(pair)
    return changed, saved


def cut_at(lengths, at) -> list:
    """For each length: (length, share of lines that are longer, share of all tokens that are cut off)."""
    total = sum(lengths) or 1
    return [(most, sum(length > most for length in lengths) / max(len(lengths), 1),
             sum(max(length - most, 0) for length in lengths) / total) for most in at]


def padding(lengths, batch, most, bucket_batches=100, seed=0) -> dict:
    """What part of the tokens is padding, by how batches are made: of `lengths`, cut at `most`.

    fixed     every line padded to `most`
    random    batches drawn at random, each padded to its longest
    buckets   `bucket_batches` batches drawn together, sorted, and parted
    sorted    all lines sorted: the least that there can be, with no chance left in what stands beside what
    """
    import random

    cut = [min(length, most) for length in lengths if length > 0]
    if not cut:
        return {}
    order = cut[:]
    random.Random(seed).shuffle(order)

    def waste(lines):
        batches = [lines[i:i + batch] for i in range(0, len(lines), batch)]
        return 1 - sum(map(sum, batches)) / sum(max(b) * len(b) for b in batches)

    pool = batch * bucket_batches
    buckets = [x for i in range(0, len(order), pool) for x in sorted(order[i:i + pool])]
    return {"fixed": 1 - sum(cut) / (most * len(cut)), "random": waste(order), "buckets": waste(buckets), "sorted": waste(sorted(cut))}
