"""What scripts do by hand: gradients that no backward has left there, batches that are on the GPU beforehand, experts and turns."""

import pytest
from test_beside_the_step import captured
from test_scripts import found
from test_wild_styles import notes

import by_hand_scripts
import many_captures


@pytest.fixture(scope="module")
def answers(tmp_path_factory, on_cuda) -> dict:
    scripts = {name: text for name, text in vars(by_hand_scripts).items() if name.isupper() and name != "HEAD" and not name.startswith("_")}
    return many_captures.of(scripts, {}, tmp_path_factory.mktemp("by_hand"))


def gradient_bytes(doc) -> list:
    """Of each parameter that has one."""
    return [doc["storages"][row["gradient"]][0] for row in doc["parameters"] if "gradient" in row]


def test_gradients_that_are_copied_to_weights_in_another_type(answers):
    doc = captured(answers, "MASTER_WEIGHTS")
    kinds = [doc["types"][row["type"]][0] for row in doc["parameters"]]
    assert sorted(kinds) == ["bf16"] * 4 + ["f32"] * 4
    weights = [64 * 32, 32, 32 * 8, 8]
    assert sorted(gradient_bytes(doc)) == sorted([2 * n for n in weights] + [4 * n for n in weights])


def test_gradients_of_each_sample_train_the_weights(answers):
    doc = captured(answers, "OF_EACH_SAMPLE")
    assert gradient_bytes(doc) == [4 * n for n in (64 * 32, 32, 32 * 8, 8)]
    assert (found(doc)["batch"], found(doc)["zero-grad-after"]) == (20, True)
    assert doc["dimensions"][0]["captured"] == [3, 5]


def test_batches_that_are_made_beforehand_are_no_growth(answers):
    doc = captured(answers, "MADE_BEFOREHAND")
    assert "stay on the GPU" not in notes(doc)
    assert found(doc)["resident"] == 9 * 64 * 4096 * 4


def test_tensors_of_numbers_on_a_default_device(answers):
    doc = captured(answers, "ON_A_DEFAULT_DEVICE")
    assert (found(doc)["batch"], found(doc)["optimizer"]) == (20, "sgd")
    assert gradient_bytes(doc) == [4 * 64 * 8, 4 * 8]
    assert "the CPU" not in notes(doc)


def test_the_step_in_which_all_optimizers_have_their_turn(answers):
    doc = captured(answers, "TURNS")
    assert len(gradient_bytes(doc)) == 8
    assert "what not every step does is not counted" in notes(doc)


@pytest.mark.parametrize("name", ["ONE_HOT_EXPERTS", "COMPARED_EXPERTS", "COUNTED_EXPERTS", "SORTED_EXPERTS"])
def test_experts_share_the_samples_evenly(answers, name):
    doc = captured(answers, name)
    assert len(gradient_bytes(doc)) >= 8, "all experts are trained"
    rows = {tuple(map(str, shape)) for kind, shape, *_ in doc["types"] if kind == "f32" and len(shape) == 2 and shape[1] == 64}
    assert ("{'batch': 4}", "64") in rows, "2 of 4 experts for each of 8 rows of a sample"
    assert ("{'batch': 16}", "64") not in rows or name == "SORTED_EXPERTS"
    assert "largest possible" not in notes(doc)
    assert "that to be expected is taken" in notes(doc) or name == "SORTED_EXPERTS"


def test_words_that_are_hidden_by_chance(answers):
    doc = captured(answers, "HIDDEN_WORDS")
    rows = {tuple(map(str, shape)) for kind, shape, *_ in doc["types"] if kind == "f32" and len(shape) == 2}
    assert ("{'batch': 20}", "64") in rows and ("{'batch': 20}", "50") in rows, "15 % of 128 words, of each sentence"
    assert "that to be expected is taken" in notes(doc) and "largest possible" not in notes(doc)


def test_samples_that_lie_on_the_gpu_are_stacked_there(answers):
    doc = captured(answers, "DATA_THERE")
    assert (found(doc)["batch"], doc["dimensions"][0]["captured"], doc["dimensions"][0]["default"]) == (20, [3, 5], 20)
    assert [400 * 64 * 4, "buffer"] in [row[:2] for row in doc["storages"]], "the data set itself"


def test_twins_that_are_updated_one_after_the_other_accumulate_nothing(answers):
    doc = captured(answers, "TWINS")
    assert len(gradient_bytes(doc)) == 4 and "accumulate" not in found(doc)
    assert (found(doc)["batch"], doc["dimensions"][0]["captured"]) == (48, [3, 5])


def test_what_the_forward_moves_to_the_host_comes_back_in_the_backward(answers):
    doc = captured(answers, "MOVED_TO_HOST")
    inputs = [row for row in doc["storages"] if row[1] == "input"]
    assert len(inputs) == 2 and "is moved to the host" in notes(doc)


def test_networks_that_are_switched_off_in_turns_are_all_trained(answers):
    doc = captured(answers, "TOGGLED")
    assert sorted(gradient_bytes(doc)) == sorted(4 * n for n in (16 * 64, 64, 64 * 32, 32, 32 * 8, 8))
    assert (found(doc)["batch"], doc["dimensions"][0]["captured"]) == (20, [3, 5])
