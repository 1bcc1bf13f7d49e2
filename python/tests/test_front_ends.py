"""predict, plan and fits with the real binary and models that ship captured. Skipped where it is not built."""

import pytest

import stoker


def test_fits_is_a_gate(with_binary):
    assert stoker.fits("resnet50", 16, "v100-16gb", optimizer="adamw") is True
    assert stoker.fits("resnet50", 4096, "v100-16gb") is False
    assert stoker.fits(model="gpt2", batch=8, gpu="t4", precision="amp-fp16", seq_len=256, grad_scaler=False) is True
    with pytest.raises(stoker.StokerError, match="resnet5O"):
        stoker.fits("resnet5O", 16, "v100-16gb")


def test_predict_takes_every_kind_of_flag(with_binary):
    def peak(seq_len=512, **settings):
        answer = stoker.predict("gpt2", "a100-40gb", batch=16, precision="amp-bf16", optimizer="adamw",
                                dim={"seq_len": seq_len}, **settings)
        return answer["memory"]["device_peak_bytes"]["value"]

    plain = peak()
    assert plain < peak(gpus=4), "buckets"
    assert peak(seq_len=1024) > plain > peak(seq_len=256)
    assert peak(checkpoint="blocks") < plain < peak(ema=True)
    assert peak(gpus=4, parallel="fsdp") < peak(gpus=4, parallel="ddp")
    assert peak(clip=True, validation=64, alloc_conf="expandable_segments:True", pin=False) > 0


def test_what_does_not_fit_says_how_much_is_missing(with_binary):
    memory = stoker.predict("llama_1b", "t4", batch=1)["memory"]
    assert memory["fits"] is False and memory["missing_bytes"] > 0


def test_plan_gives_settings(with_binary):
    answer = stoker.plan("resnet50", ["t4"], gpus=1, precision="fp32", max_global_batch=64)
    assert 0 < answer["settings"]["global_batch"] <= 64 and answer["memory"]["fits"]


def test_an_optimizer_that_is_not_modelled_is_refused_and_not_guessed_at(with_binary, on_cuda, tmp_path):
    import torch

    from steps import capture
    from stoker import step_file

    class Sophia(torch.optim.AdamW):
        def step(self, closure=None):
            pass

    model = torch.nn.Linear(512, 512)
    path = str(tmp_path / "sophia.step.gz")
    optimizer = Sophia(model.parameters())
    step_file.write(capture(stoker.Capture(model, torch.empty(4, 512), optimizer=optimizer)), path)
    with pytest.raises(stoker.StokerError, match=r"^optimizer: .*Sophia, which is not modelled"):
        stoker.predict(path, "t4", batch=8)
    assert stoker.fits(path, 8, "t4", optimizer="adamw") is True


def test_answers_are_dicts_whose_names_complete(with_binary):
    import json

    answer = stoker.predict("resnet50", "t4", batch=32, precision="amp-fp16")
    assert isinstance(answer, stoker.Prediction) and answer.fits and answer.verdict == "FITS"
    assert answer.throughput.low < float(answer.throughput) < answer.throughput.high
    assert answer.time.step_ms is answer["time"]["step_ms"] and isinstance(answer.time.step_ms, stoker.Figure)
    assert {"memory", "throughput", "time", "to_dict"} <= set(dir(answer)) and "low" in dir(answer.throughput)
    text = repr(answer)
    assert text.startswith("<stoker.Prediction of resnet50 on T4: 1 GPU, batch 32, amp-fp16: ") and "limited by" in text
    assert type(answer.to_dict()["memory"]) is dict and json.loads(json.dumps(answer)) == answer.to_dict()
    with pytest.raises(AttributeError, match="no memroy; did you mean memory.*it has .*memory"):
        answer.memroy  # noqa: B018


def test_what_does_not_fit_says_so_in_one_line(with_binary):
    assert "DOES NOT FIT: needs" in repr(stoker.predict("resnet50", "t4", batch=4096))


def test_a_notebook_shows_a_table_and_no_markup_of_the_data(with_binary):
    plan = stoker.plan("resnet50", "v100-16gb", host="cores=8,ram=64G", sample_cost="9ms")
    assert isinstance(plan, stoker.Plan) and plan.by_gpus[0].settings.gpus == 1 and plan.next[0].what
    plan["model"] = "<script>alert(1)</script>"
    shown = plan._repr_html_()
    assert "<script" not in shown and "&lt;script&gt;" in shown and "<ol>" in shown and "samples/s" in shown


def test_a_wrong_keyword_is_one_sentence(with_binary):
    with pytest.raises(stoker.StokerError) as refused:
        stoker.predict("resnet50", "t4", bacth=3)
    assert "did you mean batch" in str(refused.value) and "\n" not in str(refused.value)


def test_a_page_is_written_beside_the_answer(with_binary, tmp_path):
    page = tmp_path / "p.html"
    assert stoker.predict("resnet50", "t4", html=page).fits
    assert page.read_text().startswith("<!doctype html>")


def test_explain_says_what_a_snapshot_holds(with_binary, tmp_path):
    import pathlib

    recorded = pathlib.Path(__file__).resolve().parents[2] / "src/snapshot/testdata/recorded/training.pickle.gz"
    answer = stoker.explain(recorded, html=tmp_path / "page.html")
    assert isinstance(answer, stoker.Explanation) and "allocated" in repr(answer) and "MiB" in repr(answer)
    assert "<b>" in answer._repr_html_() and (tmp_path / "page.html").read_text().startswith("<!doctype html>")
    with pytest.raises(stoker.StokerError, match="peak, oom or end"):
        stoker.explain(recorded, at="noon")


def test_read_study_shows_trials_and_escapes_their_values(with_binary, tmp_path):
    import subprocess

    subprocess.run([stoker.binary.find_binary(), "sweep", "-o", "s.db", "--vary", "name=a,<b>", "--metric", "loss=loss: ([0-9.]+)", "--",
                    "echo", "loss: 0.5 {name}"], cwd=tmp_path, check=True, capture_output=True)
    study = stoker.read_study(tmp_path / "s.db")
    assert [trial.metrics.loss for trial in study.trials] == [0.5, 0.5]
    assert repr(study) == "<stoker.Study of 2 trials over name: 2 done>"
    assert "<td>&lt;b&gt;</td>" in study._repr_html_() and "<td><b>" not in study._repr_html_()


def test_every_public_function_names_and_types_its_arguments():
    import inspect

    untyped = []
    for name in stoker.__all__:
        function = getattr(stoker, name)
        if inspect.isfunction(function):
            untyped += [f"{name}({p.name})" for p in inspect.signature(function).parameters.values() if p.annotation is p.empty]
    assert untyped == []
