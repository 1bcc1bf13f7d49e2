"""Batch rules, vocabularies, lengths, goodput and gates."""

import collections
import gzip
import json
import math
import os
import subprocess

import pytest

import stoker
from stoker.binary import StokerError, find_binary
from stoker.tune import words


def test_the_linear_rule_warms_up_and_knows_its_end():
    scaled = stoker.scale_batch(0.1, 256, 1024, devices=16, samples=1_281_167)
    assert scaled.lr == pytest.approx(0.4)
    assert (scaled.per_device_batch, scaled.global_batch) == (1024, 16384)
    assert scaled.warmup_steps == math.ceil(5 * 1_281_167 / 16384)
    assert any("known to break" in note for note in scaled.notes)
    assert "1024 a device, 16384 in all" in str(scaled)
    assert not any("break" in note for note in stoker.scale_batch(0.1, 256, 512).notes)


def test_adams_rule_moves_betas_and_eps():
    scaled = stoker.scale_batch(1e-3, 64, 256, optimizer="adamw")
    assert scaled.rule == "adam" and scaled.lr == pytest.approx(2e-3)
    assert scaled.betas == pytest.approx((0.6, 0.996))
    assert scaled.eps == pytest.approx(5e-9)
    broken = stoker.scale_batch(1e-3, 64, 1024, optimizer="adam")
    assert broken.betas == (0.9, 0.999) and any("must stay below 1" in note for note in broken.notes)


def test_the_noise_scale_says_what_a_step_is_worth():
    scaled = stoker.scale_batch(0.1, 100, 400, noise_scale=100)
    assert any("worth 1.6 steps" in note for note in scaled.notes)
    with pytest.raises(ValueError):
        stoker.scale_batch(0.1, 0, 10)


def brute_force_bpe(counts, merges):
    texts = {word: list(word[:-1]) + [word[-1] + "</w>"] for word in counts}
    characters = {symbol for symbols in texts.values() for symbol in symbols}
    for done in range(merges):
        pairs = collections.Counter()
        for word, symbols in texts.items():
            for pair in zip(symbols, symbols[1:]):
                pairs[pair] += counts[word]
        if not pairs:
            merges = done
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        for word, symbols in texts.items():
            joined, i = [], 0
            while i < len(symbols):
                if tuple(symbols[i:i + 2]) == best:
                    joined.append("".join(best))
                    i += 2
                else:
                    joined.append(symbols[i])
                    i += 1
            texts[word] = joined
    return merges, len(characters) + merges, sum(len(texts[word]) * count for word, count in counts.items())


@pytest.mark.parametrize("merges", [1, 5, 20, 60, 500])
def test_byte_pairs_are_those_of_a_brute_force(merges):
    text = "the lower the newest widest lowest banana bananas aaaa aaaaa a the then there other mother brother low new wide"
    counts = collections.Counter(text.split() * 3 + ["lower"] * 4 + ["zzz"])
    assert words.bpe_sizes(counts, [merges]) == [brute_force_bpe(counts, merges)]


def test_thresholds_and_tails_count():
    counts = collections.Counter({"a": 10, "b": 5, "c": 1, "d": 1})
    assert words.thresholds(counts, (1, 2, 6)) == [(1, 4, 1.0), (2, 2, 15 / 17), (6, 1, 10 / 17)]
    assert words.most_common_share(counts, (1,)) == [(1, 10 / 17)]
    assert words.cut_at([1, 2, 3, 10], (3,)) == [(3, 0.25, 7 / 16)]


def test_padding_is_what_it_says():
    lengths = [1, 1, 9, 9]
    found = words.padding(lengths, 2, 9)
    assert found["fixed"] == pytest.approx(1 - 20 / 36)
    assert found["sorted"] == 0 and found["buckets"] == 0
    many = [1 + (i * 7919) % 50 for i in range(5000)]
    found = words.padding(many, 32, 50)
    assert found["sorted"] <= found["buckets"] < found["random"] < found["fixed"]


def test_vocab_of_a_text(tmp_path):
    binary = _binary()
    with gzip.open(tmp_path / "text.gz", "wt", encoding="utf-8") as file:
        file.write("The cat sat.\n\nthe dog, the cat and the bird sang\n" * 50)
    done = subprocess.run([binary, "vocab", str(tmp_path / "text.gz"), "--json"], capture_output=True, text=True, env=_environment())
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert (found["schema"], found["lines"], found["distinct"]) == ("stoker-vocab-1", 100, 9)
    assert found["by_least_count"][0]["covered"] == 1.0
    shown = subprocess.run([binary, "vocab", str(tmp_path / "text.gz")], capture_output=True, text=True, env=_environment()).stdout
    assert "padding: fixed" in shown
    (tmp_path / "empty").write_text("\n\n")
    (tmp_path / "folder").mkdir()
    (tmp_path / "cut.gz").write_bytes(gzip.compress(b"words " * 4000)[:-30])
    (tmp_path / "plain.gz").write_text("words")
    for name, said in (("empty", "has no words"), ("missing", "there is no such file; give texts"), ("folder", "is a folder; name"),
                       ("cut.gz", "is no whole gzip file"), ("plain.gz", "is no whole gzip file")):
        done = subprocess.run([binary, "vocab", str(tmp_path / name)], capture_output=True, text=True, env=_environment())
        assert done.returncode == 3 and said in done.stderr and "Errno" not in done.stderr


def test_goodput_is_the_formula_on_forecasts():
    _binary()
    found = stoker.goodput("resnet50", "v100-16gb", 1000, [16, 64, 1024], gpus=[1, 2], price=2)
    rows = [row for row in found["rows"] if row["fits"]]
    assert [row["batch"] for row in found["rows"] if not row["fits"]] == [1024, 1024]
    for row in rows:
        assert row["efficiency"] == pytest.approx(1 / (1 + row["global_batch"] / 1000))
        assert row["goodput"] == pytest.approx(row["samples_per_s"] * row["efficiency"])
    assert found["soonest"] == max(rows, key=lambda row: row["goodput"])
    assert found["cheapest"] == max(rows, key=lambda row: row["goodput"] / row["gpus"])


def _environment():
    import pathlib
    import sys

    return dict(os.environ, PYTHONPATH=str(pathlib.Path(__file__).resolve().parents[2]), STOKER_PYTHON=sys.executable)


def _binary():
    try:
        return find_binary()
    except StokerError:
        pytest.skip("the stoker binary is not built")
