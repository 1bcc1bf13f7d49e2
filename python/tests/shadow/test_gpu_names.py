"""The GPU that a captured script sees, by the names people write."""

import pytest

from stoker.errors import CaptureError
from stoker.shadow import command, gpu_names
from stoker.shadow.world import Gpu


@pytest.mark.parametrize("name", ["RTX 4090", "rtx4090", "rtx-4090"])
def test_a_name_of_the_catalogue_gives_its_facts(with_binary, name):
    assert command.gpu_of(name, 2) == Gpu("NVIDIA GeForce RTX 4090", 24 << 30, (8, 9), 128, 2)


def test_a_name_that_begins_others_is_the_one_called_so(with_binary):
    assert command.gpu_of("a10").name == "NVIDIA A10"


def test_a_gpu_without_nvidias_numbers_passes_for_a_new_one(with_binary):
    gpu = command.gpu_of("mi300x")
    assert (gpu.name, gpu.capability, gpu.processors) == ("AMD Instinct MI300X", (9, 0), 304)


@pytest.mark.parametrize("vendor, name, told", [
    ("NVIDIA", "A100-SXM4-40GB", "NVIDIA A100-SXM4-40GB"), ("NVIDIA", "A100-PCIe-80GB", "NVIDIA A100 80GB PCIe"),
    ("NVIDIA", "RTX4070TiSuper", "NVIDIA GeForce RTX 4070 Ti SUPER"), ("NVIDIA", "GTX1080Ti", "NVIDIA GeForce GTX 1080 Ti"),
    ("NVIDIA", "RTXA6000", "NVIDIA RTX A6000"), ("NVIDIA", "V100-SXM2-16GB", "Tesla V100-SXM2-16GB"), ("NVIDIA", "K80-die", "Tesla K80"),
    ("NVIDIA", "P4000", "Quadro P4000"), ("AMD", "MI250-GCD", "AMD Instinct MI250")])
def test_scripts_read_the_drivers_names(vendor, name, told):
    assert gpu_names.of(vendor, name) == told


def test_facts_are_taken_as_they_are():
    assert command.gpu_of("Mine;1000;7.5;4") == Gpu("Mine", 1000, (7, 5), Gpu().processors, 4)
    assert command.gpu_of("Mine;1000;7.5;4", 1).count == 1
    assert command.gpu_of("NVIDIA T4;1000;7.5;1;40") == Gpu("Tesla T4", 1000, (7, 5), 40, 1)
    assert command.gpu_of(None) == Gpu()


@pytest.mark.parametrize("name, count, words", [
    ("nonsuch", None, "no GPU is called"), ("ampere", None, "may be any of .*A100-PCIe-40GB.*: give one of these"),
    ("A;3;8;1", None, "write a name that stoker gpus lists"), ("t4", 0, "--gpus 0: give how many GPUs")])
def test_names_that_mean_no_gpu_are_refused(with_binary, name, count, words):
    with pytest.raises(CaptureError, match=words):
        command.gpu_of(name, count)
