"""The command as people and the binary run it, in processes of their own."""

import gzip
import json
import os
import re
import subprocess
import sys

import pytest

import stoker
from places import PYTHON, SUPPORT
from stoker import cli

GOOD = SUPPORT / "good_models.py"


def run(*arguments, **environment):
    return subprocess.run([sys.executable, *arguments], capture_output=True, text=True,
                          env={**os.environ, "PYTHONPATH": str(PYTHON), **environment})


def test_importing_stoker_needs_no_torch():
    done = run("-c", "import sys, stoker; assert 'torch' not in sys.modules; print(stoker.__version__)")
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == stoker.__version__


def test_capture_writes_a_file_and_reports_progress(tmp_path):
    out = tmp_path / "tiny.step.gz"
    done = run("-m", "stoker", "capture", f"{GOOD}:tiny", "-o", str(out), "--precision", "amp-bf16", "--batch", "24",
               "--set", "width=12", "--json-progress")
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
    steps = [r for r in rows if "done" in r]
    assert steps[0]["done"] == 0 and steps[-1]["done"] == steps[-1]["of"] == 3
    doc = json.loads(gzip.decompress(out.read_bytes()))
    assert doc["format"] == "stoker-step" and doc["schema_version"] == [1, 4]
    assert doc["name"] == "tiny" and doc["precision"] == "amp-bf16" and doc["dimensions"][0]["default"] == 24
    assert doc["types"][doc["parameters"][0]["type"]] == ["f32", [8, 12]]
    assert out.read_bytes()[4:8] == bytes(4), "gzip's time stamp is zero, so that equal captures are equal files"


def test_the_fallback_to_fake_cpu_is_said_and_marked(tmp_path):
    out = tmp_path / "tiny.step.gz"
    done = run("-m", "stoker", "capture", f"{GOOD}:tiny", "-o", str(out), STOKER_FAKE_CPU="1")
    assert done.returncode == 0, done.stderr
    assert "fake CPU" in done.stderr and "fake CPU" in done.stdout
    doc = json.loads(gzip.decompress(out.read_bytes()))
    assert doc["provenance"]["capture"] == "fake-cpu" and doc["diagnostics"]["unfaithful"]


def test_a_capture_for_a_cpu_is_what_pytorch_does_there(tmp_path):
    out = tmp_path / "words.step.gz"
    done = run("-m", "stoker", "capture", f"{GOOD}:words", "-o", str(out), "--device", "cpu")
    assert done.returncode == 0 and "instead" not in done.stderr and "note" not in done.stdout, done.stderr + done.stdout
    doc = json.loads(gzip.decompress(out.read_bytes()))
    assert doc["provenance"]["capture"] == "fake-cpu" and doc["diagnostics"] == {}
    names = [doc["strings"]["operators"][e[1]] for e in doc["events"] if e[0] == "o"]
    for suffix in ("", "_backward"):
        assert names.count(f"aten::_scaled_dot_product_flash_attention_for_cpu{suffix}") == 1
    assert names.count("aten::tanh_") == 5 and not any("cudnn" in name or "stoker::" in name for name in names)
    weights = [p for p in doc["parameters"] if p["name"].startswith("reads.")]
    assert len({p["storage"] for p in weights}) == 4, "one buffer is cuDNN's"


def test_a_device_that_nothing_is_captured_for_is_refused(capsys):
    assert cli.main(["capture", f"{GOOD}:tiny", "--device", "tpu"]) == 3
    assert "use cuda (any GPU) or cpu" in capsys.readouterr().err


def test_python_function_captures_in_a_child():
    doc = stoker.capture(f"{GOOD}:tiny", fixed={"batch": 4}, device="cpu")
    assert doc["name"] == "tiny" and doc["dimensions"][0]["captured"] == [4]
    assert doc["provenance"]["capture"] == "fake-cpu" and doc["diagnostics"] == {}


def test_what_a_child_said_becomes_the_error():
    from stoker import front
    from stoker.errors import InternalError, UserCodeError

    assert str(front._error("note\nstoker: no such thing; write another\n", 3)) == "no such thing; write another"
    users = front._error("Traceback (your frames):\n  File x\nstoker: it raised\n", 3)
    assert isinstance(users, UserCodeError) and "File x" in users.traceback_text
    assert "died" in str(front._error("Segmentation fault", -11))
    ours = front._error("Traceback (most recent call last):\n  File y\nstoker: a fault of stoker's\n", 70)
    assert isinstance(ours, InternalError) and "File y" in ours.traceback_text


@pytest.mark.parametrize("function", ["named_gpu", "computes_in_its_constructor"])
def test_awkward_constructors(on_cuda, capsys, tmp_path, function):
    code = cli.main(["capture", f"{GOOD}:{function}", "-o", str(tmp_path / "x.step.gz")])
    assert code == 0, capsys.readouterr().err


def test_flags_of_the_binary_from_keyword_arguments():
    made = stoker.binary.arguments({"gpu": ["v100-16gb", "h100"], "batch": 32, "max_global_batch": 512, "channels_last": True,
                                    "bucket_view": False, "host": {"cores": 16, "ram": "64G"}, "price": None, "pin": True})
    assert made == ["--gpu", "v100-16gb,h100", "--batch", "32", "--max-global-batch", "512", "--channels-last",
                    "--no-bucket-view", "--host", "cores=16,ram=64G", "--pin"]
    negated = {"clip": False, "ema": False, "pin": False}  # what a capture says, or the default, is switched off
    assert stoker.binary.arguments(negated) == ["--no-clip", "--no-ema", "--no-pin"]
    assert stoker.binary.arguments({"pin": False, "grad_scaler": False}) == ["--no-pin", "--no-grad-scaler"]
    assert stoker.binary.arguments({"grad_scaler": True, "checkpoint": ["a.*", "b"]}) == ["--grad-scaler", "--checkpoint", "a.*,b"]
    assert stoker.binary.arguments({"dim": {"a": 1, "b": 2}, "reading": ["10:3GB", "50:9GB"]}) == [
        "--dim", "a=1,b=2", "--reading", "10:3GB,50:9GB"]


def _fake_binary(tmp_path, text, code):
    path = tmp_path / "stoker"
    path.write_text(f"#!{sys.executable}\nimport sys\n{text}\nsys.exit({code})\n")
    path.chmod(0o755)
    return str(path)


def test_predict_and_fits_read_the_binarys_json(tmp_path, monkeypatch):
    says = "print('{\"argv\": \"' + ' '.join(sys.argv[1:]) + '\", \"memory\": {\"fits\": false}}')"
    monkeypatch.setenv("STOKER_BINARY", _fake_binary(tmp_path, says, 1))
    assert stoker.predict("resnet50", "h100", batch=8)["argv"] == "predict resnet50 --gpu h100 --batch 8 --json"
    assert stoker.fits("resnet50", 8, "h100") is False
    monkeypatch.setenv("STOKER_BINARY", _fake_binary(tmp_path, "sys.stderr.write('stoker: no GPU h1000\\n')", 3))
    with pytest.raises(stoker.StokerError, match="^no GPU h1000$"):
        stoker.plan("resnet50", "h1000")


def test_names_of_pytorchs_ecosystem_are_taken_for_ours(with_binary):
    common = {"host": "cores=8,ram=64G", "sample_cost": "2ms"}
    ours = stoker.predict("resnet18", "v100-16gb", workers=4, batch=32, pin=False, prefetch=3, accumulate=8, **common)
    theirs = stoker.predict("resnet18", "v100-16gb", num_workers=4, batch_size=32, pin_memory=False, prefetch_factor=3,
                            gradient_accumulation_steps=8, **common)
    assert ours == theirs
    with pytest.raises(stoker.StokerError, match="^num_workers: names the same setting as workers; give one of them$"):
        stoker.predict("resnet18", "v100-16gb", workers=4, num_workers=2)
    with pytest.raises(stoker.StokerError, match="^num_workers: must be between 0 and 1,024, not -1$"):
        stoker.predict("resnet18", "v100-16gb", num_workers=-1)


def test_the_binary_knows_the_flags_of_pythons_verbs(with_binary):
    from stoker import capture_command
    from stoker.observe import cli as observation

    script = subprocess.run([with_binary, "completion", "bash"], capture_output=True, text=True, check=True).stdout
    help_flags = {"-h", "--help", "--help-all"}
    for verb, parser in (("capture", capture_command.parser()), ("observation", observation.parser())):
        words = re.search(rf'^ +{verb}\) words="(.*)" ;;$', script, re.MULTILINE)[1].split()
        assert set(words) - help_flags == set(parser._option_string_actions) - help_flags, verb


def test_what_is_off_is_left_as_it_is_without_it(with_binary):
    plain = stoker.predict("resnet18", "v100-16gb", host="cores=8,ram=64G")
    assert plain == stoker.predict("resnet18", "v100-16gb", host="cores=8,ram=64G", channels_last=False, checkpoint=False, pin=True)


@pytest.mark.parametrize("verb, shown, rare", [("capture", "--precision", "--json-progress"), ("training-runs", "--batches", "--attempts"),
                                               ("loader-runs", "--pipeline", "--recalibrate")])
def test_help_shows_what_matters_and_help_all_the_rest(verb, shown, rare, capsys):
    for flag, everything in (("--help", False), ("--help-all", True)):
        with pytest.raises(SystemExit) as end:
            cli.main([verb, flag])
        said = capsys.readouterr().out
        assert end.value.code == 0 and f"usage: stoker {verb} " in said and shown in said and "--help-all" in said
        assert (rare in said) is everything
        assert everything or sum(line.startswith("  -") for line in said.splitlines()) <= 12


def test_every_verb_of_python_has_a_help_of_its_own(capsys):
    for verb in cli.VERBS:
        if verb != "probe":  # without FILE.py:FUNCTION it is the binary's
            with pytest.raises(SystemExit) as end:
                cli.main([verb, "--help"])
            typed = "validate" if verb == "validate-script" else verb  # `stoker validate train.py` comes here
            assert end.value.code == 0 and f"usage: stoker {typed} " in capsys.readouterr().out


@pytest.mark.parametrize(("said", "told"), [
    ("unknown flag --batchsize; did you mean --batch-size? (stoker plan --help-all lists all)",
     "unknown setting batchsize; did you mean batch_size?"),
    ("--workers: must be between 0 and 1,024, not -1", "workers: must be between 0 and 1,024, not -1"),
    ("--no-pin: is of a GPU; see `stoker predict --help`", "pin=False: is of a GPU; see `stoker predict --help`"),
    ("train.py: the following arguments are required: --epochs", "train.py: the following arguments are required: --epochs"),
    ("unknown flag --lr; what train.py itself takes goes behind --: -- --lr 0.1 (stoker plan --help-all lists all)",
     "unknown setting lr; what train.py itself takes is script_arguments=['--lr', '0.1']")])
def test_errors_speak_of_keywords(said, told):
    from stoker.binary import keywords
    assert keywords(said) == told


def test_numbers_are_written_as_the_command_reads_them():
    from stoker.binary import arguments
    assert arguments({"batch": 64.0, "samples": 1.28e6, "price": 0.5, "gpus": True}) == \
        ["--batch", "64", "--samples", "1280000", "--price", "0.5", "--gpus"]
