"""Answers as objects: figures as the command writes them, attributes, notebooks' tables."""

import math

import pytest

from stoker import results


def figure(value, low, high, basis="measured"):
    return {"value": value, "low": low, "high": high, "basis": basis}


DOCUMENT = {
    "model": "<b>net</b>", "gpu": "T4",
    "settings": {"gpus": 2, "batch": 64, "global_batch": 128, "precision": "amp-fp16"},
    "memory": {"fits": True, "verdict": "FITS", "usable_bytes": 14.75 * 2**30,
               "device_peak_bytes": figure(7.5 * 2**30, 7 * 2**30, 8.25 * 2**30)},
    "limiter": {"what": "GPU compute"}, "gpu_utilization": figure(0.994, 0.9, 1),
    "throughput_samples_per_s": figure(390.4, 315, 475), "time": {"step_ms": figure(328, 265, 406)},
}


@pytest.mark.parametrize(("value", "text"), [
    (0.5, "0.50"), (9.994, "9.99"), (9.996, "10.0"), (99.94, "99.9"), (99.96, "100"), (999.4, "999"), (999.6, "1,000"),
    (1234, "1,230"), (1_281_167, "1,280,000"), (-999.6, "-1,000"), (0, "0.00")])
def test_figures_have_three_digits(value, text):
    assert results.number(value) == text


def test_no_figure_is_off_by_more_than_half_of_its_third_digit():
    value = 1.0
    while value < 1e9:
        text = results.number(value)
        assert float(text.replace(",", "")) == pytest.approx(value, rel=0.005001)
        if value < 999:
            assert len(text.replace(".", "")) == 3
        value *= 1.013


def test_sizes_stay_below_their_next_unit():
    assert results.size(512) == "512 B"
    assert results.size(1536) == "1.5 KiB"
    assert results.size(2**20 - 1) == "1.0 MiB"
    assert results.size(1.5 * 2**30) == "1.50 GiB"
    for exponent in range(1, 400):
        value = 1.1**exponent
        amount, unit = results.size(value).split()
        assert float(amount) < 1024 or unit == "GiB"
        scale = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}[unit]
        assert math.isclose(float(amount) * scale, value, rel_tol=0.05) or unit == "B"


def test_what_json_has_under_a_name_is_an_attribute():
    answer = results.answer(results.Prediction, DOCUMENT)
    assert answer.settings.batch == answer["settings"]["batch"] == 64
    assert float(answer.throughput) == 390.4
    assert repr(answer.throughput) == "390 [315-475]"
    assert answer.fits and answer.verdict == "FITS"
    assert answer.to_dict() == DOCUMENT
    assert type(answer.to_dict()["settings"]) is dict
    assert "settings" in dir(answer)
    with pytest.raises(AttributeError, match=r"this answer has no thruput; did you mean throughput\? \(it has fits, gpu, "):
        _ = answer.thruput


def test_an_answer_says_in_a_line_what_it_is_of():
    answer = results.answer(results.Prediction, DOCUMENT)
    assert repr(answer) == ("<stoker.Prediction of <b>net</b> on T4: 2 GPUs, batch 64 (128 global), amp-fp16: "
                            "390 [315-475] samples/s, limited by GPU compute>")
    full = {**DOCUMENT, "memory": {**DOCUMENT["memory"], "fits": False, "verdict": "DOES NOT FIT"}}
    assert repr(results.answer(results.Prediction, full)).endswith(
        "DOES NOT FIT: needs 7.50 GiB [7.00-8.25] of 14.8 GiB>")


def test_notebooks_show_no_markup_of_the_data():
    page = results.answer(results.Prediction, DOCUMENT)._repr_html_()
    assert "<b>net</b>" not in page
    assert "&lt;b&gt;net&lt;/b&gt;" in page
    assert "99 %" in page


def test_several_jobs_side_by_side_are_parts():
    several = results.answer(results.Prediction, {"gpus": [DOCUMENT, DOCUMENT]})
    assert not isinstance(several, results.Answer)
    assert several.gpus[1].settings.gpus == 2
    assert isinstance(several.gpus[0].time.step_ms, results.Figure)


def study(name, trials):
    return results.Study(results.parts({
        "name": name, "axes": ["batch"], "counts": {"done": trials, "out_of_memory": 1},
        "trials": [{"trial": i + 1, "values": {"batch": 2**i}, "state": "done", "metrics": {"loss": i / 3}} for i in range(trials)]}))


def test_a_study_says_its_name_and_its_counts():
    assert repr(study("optimizers", 2)) == "<stoker.Study optimizers of 2 trials over batch: 2 done, 1 out of memory>"
    assert repr(study("", 2)).startswith("<stoker.Study of 2 trials")


def test_a_long_study_is_cut_in_a_notebook():
    page = study("long", 60)._repr_html_()
    assert page.count("<tr>") == 51
    assert "and 10 more" in page
    assert "<td>0.3333</td>" in page


def test_an_explanation_leads_with_what_matters():
    held = results.Explanation(results.parts({"live": {"parameters_bytes": 3 * 2**20, "gradients_bytes": 0},
                                              "why": ["the cache is in pieces"]}))
    assert repr(held) == "<stoker.Explanation: parameters 3.0 MiB>"
    assert "<li>the cache is in pieces</li>" in held._repr_html_()
    watched = results.Explanation(results.parts({"verdict": "waits for data", "findings": [{"name": "workers", "cure": "more"}]}))
    assert repr(watched) == "<stoker.Explanation: waits for data>"
    assert "<li>workers: more</li>" in watched._repr_html_()


def several(**document):
    return results.answer(results.Prediction, {"model": "<b>net</b>", **document})


ROW = {key: DOCUMENT[key] for key in ("gpu", "settings", "memory", "throughput_samples_per_s")}


def test_several_gpus_are_a_table():
    no = {**ROW, "gpu": "K80", "memory": {**ROW["memory"], "fits": False, "verdict": "DOES NOT FIT"}}
    answer = several(gpus=[ROW, no], objective="throughput")
    assert isinstance(answer, results.Comparison)
    assert repr(answer) == "<stoker.Comparison of <b>net</b>: T4: 390 [315-475] samples/s; K80: - samples/s>"
    page = answer._repr_html_()
    assert "&lt;b&gt;net&lt;/b&gt;" in page and "<b>net" not in page
    assert page.count("<tr>") == 3 and "DOES NOT FIT" in page
    assert answer.to_dict()["gpus"][0]["gpu"] == "T4"


def test_several_settings_are_a_table_with_what_was_refused():
    answer = several(table=[{"batch": 8, "forecast": ROW}, {"batch": 16, "refused": "no such batch"}])
    assert repr(answer) == "<stoker.Comparison of <b>net</b>: 8: 390 [315-475] samples/s; 16: - samples/s>"
    assert "refused" in answer._repr_html_()


def test_several_numbers_of_gpus_are_a_table():
    point = {"gpus": 2, "throughput_samples_per_s": figure(700, 600, 800), "efficiency": 0.9, "fits": True}
    answer = several(scaling={"points": [point, {"gpus": 3, "possible": False}]})
    assert repr(answer) == "<stoker.Comparison of <b>net</b>: 2: 700 [600-800] samples/s; 3: - samples/s>"
    assert "90 %" in answer._repr_html_()


def test_a_wrong_name_is_answered_with_the_nearest():
    answer = results.answer(results.Prediction, DOCUMENT)
    with pytest.raises(AttributeError, match="no troughput; did you mean throughput?"):
        _ = answer.troughput


def test_what_is_known_prints_as_a_table():
    table = results.Table([results.Part(name="T4", memory_bytes=16 * 2**30), results.Part(name="A100 <x>", memory_bytes=40 * 2**30)],
                          {"name": "GPU", "memory_bytes": "memory"})
    assert repr(table).splitlines() == ["GPU       memory", "T4        16.00 GiB", "A100 <x>  40.00 GiB"]
    assert "A100 &lt;x&gt;" in table._repr_html_()
    assert [row.name for row in table] == ["T4", "A100 <x>"]
