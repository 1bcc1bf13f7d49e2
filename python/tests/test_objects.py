"""predict, plan and fits of objects of Python's: modules, functions, Captures. Skipped without PyTorch or the binary."""

import pathlib

import pytest

import stoker
from stoker import caches, objects

torch = pytest.importorskip("torch")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def small_net():
    return torch.nn.Sequential(torch.nn.Conv2d(3, 16, 3, padding=1), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(16 * 32 * 32, 10))


def summed(output):
    return output.sum()


def built_by(spec):
    """What the function returns that a spec names."""
    file, _, name = spec.rpartition(":")
    space = {"__file__": file}
    exec(compile(pathlib.Path(file).read_text(), file, "exec"), space)
    return space[name]()


def test_a_module_is_rebuilt_by_its_shapes_alone():
    net = torch.nn.Linear(4096, 4096)
    spec = objects.spec_of(net, {"inputs": torch.zeros(8, 4096)})
    file, _, name = spec.rpartition(":")
    assert name == "Linear"
    assert pathlib.Path(file).with_suffix(".pickle").stat().st_size < 20_000, "64 MiB of weights are left out"
    made = built_by(spec)
    assert isinstance(made, stoker.Capture)
    assert made.module.weight.shape == (4096, 4096) and made.module.weight.requires_grad
    assert isinstance(made.module.weight, torch.nn.Parameter)
    assert made.inputs.shape == (8, 4096)
    assert objects.spec_of(net, {"inputs": torch.ones(8, 4096)}) == spec, "the same shapes are the same model"
    assert objects.spec_of(torch.nn.Linear(4096, 1), {"inputs": torch.ones(8, 4096)}) != spec


def test_what_models_read_keeps_its_values():
    net = torch.nn.Module()
    net.register_buffer("offsets", torch.arange(7))
    net.register_buffer("table", torch.zeros(2000))
    net.tied = net.weight = torch.nn.Parameter(torch.zeros(3), requires_grad=False)
    made = built_by(objects.spec_of(net, {"inputs": (torch.zeros(2, 3),)}))
    assert made.module.offsets.tolist() == [0, 1, 2, 3, 4, 5, 6]
    assert made.module.tied is made.module.weight and not made.module.weight.requires_grad


def test_a_view_brings_its_own_values_alone():
    net = torch.nn.Linear(2, 2)
    net.register_buffer("few", torch.arange(1_000_000)[7:9])
    spec = objects.spec_of(net, {"inputs": torch.zeros(2, 2)})
    assert pathlib.Path(spec.rpartition(":")[0]).with_suffix(".pickle").stat().st_size < 20_000
    assert built_by(spec).module.few.tolist() == [7, 8]


def test_names_and_functions_stay_what_they_are():
    assert objects.spec_of("resnet50", {}) == "resnet50"
    assert objects.spec_of(small_net, {}) == f"{__file__}:small_net"
    with pytest.raises(objects.ObjectError, match="leave them out"):
        objects.spec_of("resnet50", {"inputs": 1})
    for given in ({"inputs": 1}, {"loss": summed}, {"optimizer": object()}):
        with pytest.raises(objects.ObjectError, match="give them to the stoker.Capture"):
            objects.spec_of(small_net, given)


def test_what_cannot_be_a_model_is_refused_in_a_sentence():
    with pytest.raises(stoker.StokerError, match="a Sequential needs example inputs"):
        stoker.predict(small_net(), "t4")
    with pytest.raises(stoker.StokerError, match="a list is no model"):
        stoker.predict(["resnet50", "gpt2"], "t4")


def test_a_class_that_no_other_process_knows_is_refused_with_the_cure(monkeypatch):
    class Net(torch.nn.Module):
        def forward(self, x):
            return x

    monkeypatch.setitem(__import__("sys").modules, "cloudpickle", None)
    monkeypatch.setattr(Net, "__module__", "__main__")
    with pytest.raises(objects.ObjectError, match="Net is defined in this script or notebook.*write it to a file"):
        objects.spec_of(Net(), {"inputs": torch.zeros(2)})
    monkeypatch.setattr(Net, "__module__", __name__)
    with pytest.raises(objects.ObjectError, match="cannot be handed to another process.*FILE.py:FUNCTION"):
        objects.spec_of(Net(), {"inputs": torch.zeros(2)})


def test_a_folder_that_cannot_be_written_is_named(tmp_path, monkeypatch):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    with pytest.raises(objects.ObjectError, match="set XDG_CACHE_HOME"):
        objects.spec_of(torch.nn.Linear(2, 2), {"inputs": torch.zeros(2, 2)})


def test_a_pickle_that_others_can_write_is_written_anew():
    net = torch.nn.Linear(2, 2)

    def asked():
        return objects.spec_of(net, {"inputs": torch.zeros(2, 2)})

    spec = asked()
    pickled = pathlib.Path(spec.rpartition(":")[0]).with_suffix(".pickle")
    content = pickled.read_bytes()
    pickled.write_bytes(b"another")
    pickled.chmod(0o666)
    assert asked() == spec and pickled.read_bytes() == content
    pickled.parent.chmod(0o777)
    with pytest.raises(objects.ObjectError, match=f"others can write {pickled.parent},"):
        asked()


def test_a_module_is_forecast_and_its_capture_remembered(with_binary):
    net = small_net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    answer = stoker.predict(net, "t4", inputs=torch.zeros(8, 3, 32, 32), batch=16, optimizer="adamw")
    assert answer.model == "Sequential" and answer.settings.batch == 16 and answer.fits
    assert answer.settings.optimizer == "adamw"
    assert stoker.fits(net, 16, "t4", inputs=torch.zeros(8, 3, 32, 32)) is True
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items()), "the module is as it was"
    assert len(list((caches.folder() / "objects").glob("*.py"))) == 1


def test_a_loss_and_an_optimizer_of_its_own_are_taken(with_binary):
    net = small_net()
    answer = stoker.predict(net, "t4", inputs=torch.zeros(8, 3, 32, 32), loss=summed,
                            optimizer=torch.optim.RMSprop(net.parameters(), lr=0.1, momentum=0.9))
    assert answer.settings.optimizer == "rmsprop"
