"""Each bad input: exit 3, one sentence with the cure, nothing written."""

import pytest

from places import SUPPORT
from stoker import cli, device, shim
from stoker.errors import CaptureError

BAD = SUPPORT / "bad_models.py"


def fail(capsys, tmp_path, *arguments):
    """Runs a capture that has to fail, and returns what it said last and everything it said."""
    out = tmp_path / "out.step.gz"
    code = cli.main(["capture", *arguments, "-o", str(out)])
    said = capsys.readouterr()
    assert code == 3, said.err
    assert list(tmp_path.iterdir()) == [], "nothing may be written"
    last = said.err.strip().splitlines()[-1]
    assert last.startswith("stoker: ") and said.out == ""
    return last, said.err


@pytest.mark.parametrize("function, words", [
    ("optimizer_third", ["Adam where a loss function belongs", "stoker.Capture(module, inputs, optimizer=...)"]),
    ("picks_rows", ["aten::index.Tensor", "depends on the data", "mask of fixed size"]),
    ("integer_item", [".item()", "no values", "pass it as a Python number"]),
    ("to_numpy", ["needs the values of a tensor", "keep the computation in torch"]),
    ("no_fake", ["stoker_tests::real_only", "no fake implementation", "register_fake"]),
    ("grows", ["aten::new_zeros", "8, 32, 256", "--fixed"]),
    ("frozen", ["no training step", "--mode inference"]),
    ("lazy", ["lazy modules", "run it once"]),
    ("sparse", ["sparse tensor", "sparse=False"]),
    ("returns_a_number", ["returned int", "return (module, inputs)"]),
    ("undeclared", ["dimension 'width'", "no parameter of that name"]),
    ("vector_loss", ["the loss is [3]", ".mean()"]),
    ("fails_to_build", ["could not be built", "KeyError"]),
    ("out_of_range", ["IndexError", "correct the code named in the traceback above"]),
    ("no_such_key", ["KeyError", "correct the code named in the traceback above"]),
    ("overwrites", ["has been modified by an inplace operation", "eager PyTorch refuses this too"]),
    ("ends_the_program", ["could not be built", "sys.exit('no licence')"]),
])
def test_models_that_cannot_be_captured(on_cuda, capsys, tmp_path, function, words):
    last, _ = fail(capsys, tmp_path, f"{BAD}:{function}")
    for word in words:
        assert word in last


def test_the_users_traceback_is_shown_and_ours_is_not(on_cuda, capsys, tmp_path):
    last, everything = fail(capsys, tmp_path, f"{BAD}:raises")
    assert "my own mistake" in last and "batch 3" in last
    assert "bad_models.py" in everything and "_raise" in everything
    assert "recorder.py" not in everything and "one_step.py" not in everything


@pytest.mark.parametrize("arguments, words", [
    (["nonsense"], ["is no model", "torchvision:NAME", "FILE.py:FUNCTION"]),
    (["missing.py:f"], ["no file missing.py"]),
    ([f"{BAD}:frozzen"], ["no function 'frozzen'", "frozen"]),
    ([str(BAD)], ["made no training step", "FILE.py:FUNCTION"]),
    ([f"{BAD}:frozen", "--precision", "fp17"], ["'fp17' is no precision", "amp-fp16"]),
    ([f"{BAD}:frozen", "--mode", "test"], ["'test' is no mode"]),
    ([f"{BAD}:frozen", "--batch", "0"], ["batch 0"]),
    ([f"{BAD}:frozen", "--batch", "-3"], ["batch -3"]),
    ([f"{BAD}:frozen", "--fixed", "seq_len=4"], ["no dimension 'seq_len'"]),
    ([f"{BAD}:frozen", "--fixed", "batch=x"], ["whole number"]),
    ([f"{BAD}:frozen", "--set", "depth"], ["--set NAME=VALUE"]),
    ([f"{BAD}:frozen", "--set", "depth=3"], ["takes no option 'depth'"]),
])
def test_arguments(on_cuda, capsys, tmp_path, arguments, words):
    last, _ = fail(capsys, tmp_path, *arguments)
    for word in words:
        assert word in last


def test_a_library_that_is_missing(on_cuda, capsys, tmp_path, monkeypatch):
    import builtins
    original = builtins.__import__

    def without_timm(name, *rest):
        if name == "timm":
            raise ImportError("No module named 'timm'")
        return original(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without_timm)
    last, _ = fail(capsys, tmp_path, "timm:resnet50")
    assert "pip install timm" in last


def test_a_folder_that_does_not_exist(on_cuda, capsys, tmp_path):
    code = cli.main(["capture", f"{BAD.with_name('good_models.py')}:tiny", "-o", str(tmp_path / "none" / "x.step.gz")])
    said = capsys.readouterr().err
    assert code == 3 and "cannot write" in said and "-o" in said


def test_without_a_compiler_the_library_says_so(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(shim, "find_compiler", lambda: None)
    with pytest.raises(shim.ShimError, match="no C\\+\\+ compiler"):
        shim.library_path()


def test_without_torch_capture_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(device, "_prepared", None)
    monkeypatch.setattr(shim, "torch_folder", lambda: None)
    with pytest.raises(CaptureError, match="pip install torch"):
        device.prepare()
