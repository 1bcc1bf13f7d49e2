"""Steps that are put together in ways of their own, and what each is taken for."""

import pytest
from test_scripts import found, line_of
from test_wild_styles import notes

import many_captures
import step_scripts
from stoker.shadow import sites
from stoker.shadow.settings import micro_batches


@pytest.fixture(scope="module")
def answers(tmp_path_factory, on_cuda) -> dict:
    scripts = {name: text for name, text in vars(step_scripts).items() if name.isupper() and name != "HEAD"}
    return many_captures.of(scripts, {}, tmp_path_factory.mktemp("steps"))


def captured(answers, name: str) -> dict:
    assert answers[name]["code"] == 0, answers[name]["said"]
    return answers[name]


@pytest.mark.parametrize("name", ["BUCKETS", "BALANCED"])
def test_batches_of_a_sampler_of_its_own_are_varied(answers, name):
    doc = captured(answers, name)
    assert (found(doc)["batch"], doc["dimensions"][0]["degree"], doc["dimensions"][0]["default"]) == (20, 1, 20)


def test_what_the_loop_decides_by_chance_is_the_same_at_all_batches(answers):
    doc = captured(answers, "MIXED")
    assert (found(doc)["batch"], doc["dimensions"][0]["degree"]) == (20, 1)
    assert 1 <= doc["operators"].count("aten::mul.Tensor") < 30


def test_a_network_that_is_switched_off_in_the_others_turn_is_trained(answers):
    doc = captured(answers, "TURNS_OFF")
    assert "accumulate" not in found(doc) and "failed" not in notes(doc)
    assert len(doc["parameters"]) == 6 and all(isinstance(row["gradient"], int) for row in doc["parameters"])
    assert doc["operators"].count("aten::relu") == 2 * 3 + 1, "two passes and a loss of each of the second's turns, one of the first's"


def test_a_pass_of_every_second_step_is_said(answers):
    assert "layers, passes without gradient among them, the one that is forecast" in notes(captured(answers, "CONDITIONED"))
    assert all("layers, passes" not in notes(answers[name]) for name in ("MIXED", "LENGTHS", "TURNS_OFF"))


def test_what_samples_draw_goes_on_from_batch_to_batch(answers):
    assert found(captured(answers, "DRAWN"))["batch"] == 2


def test_batches_of_as_many_samples_as_a_budget_allows_stay_as_they_are(answers):
    doc = captured(answers, "BUDGET")
    samples, words = next(row[1] for row in doc["types"] if row[0] == "i64" and len(row[1]) == 2)
    assert 220 <= samples * words <= 240, "the largest of the first 12, none of which is filled up to the others' sizes"
    assert (found(doc)["batch"], doc["dimensions"][0]["degree"], doc["dimensions"][0]["default"]) == (samples, 0, samples)
    assert "its sampler decides how many samples make a batch" in notes(doc)


def test_buckets_are_taken_at_their_largest(answers):
    assert "the script's batches differ in size: the largest of the" in notes(answers["BUCKETS"])


def test_batches_of_several_loaders_stay_in_proportion(answers):
    doc = captured(answers, "TWO_LOADERS")
    assert (found(doc)["batch"], doc["dimensions"][0]["default"]) == (10, 10)
    assert "batches of 10 and 30 samples from several DataLoaders: other batches are in proportion to the smallest" in notes(doc)
    sizes = [row[1] for row in doc["types"] if row[0] == "f32"]
    assert [{"batch": 1}, 64] in sizes and [{"batch": 3}, 64] in sizes


def test_a_network_that_the_step_calls_is_no_average(answers):
    assert "ema" not in found(captured(answers, "TARGET"))


def test_gradients_by_a_function_are_a_backward(answers):
    doc = captured(answers, "BY_GRAD")
    assert all("gradient" in row for row in doc["parameters"]) and len(doc["parameters"]) == 4
    assert (found(doc)["batch"], doc["optimizer"]["name"]) == (20, "none")


def test_an_optimizer_of_the_host_is_left_out_and_said(answers):
    doc = captured(answers, "TABLES_ON_HOST")
    assert (found(doc)["optimizer"], len(doc["parameters"])) == ("adam", 4)
    assert "what the host computes with them is not counted" in notes(doc)


def test_the_largest_of_unequal_steps_is_taken(answers):
    doc = captured(answers, "LENGTHS")
    assert "the script's batches differ in size: the largest of the" in notes(doc)
    assert any(row[1][-2:] == [30, 16] for row in doc["types"] if row[0] == "f32")


def test_a_gpu_that_is_not_there_is_refused(answers):
    line = line_of(step_scripts.OTHER_GPU, "set_device")
    assert f"train.py line {line}: uses cuda:1, and there is 1 of them: give --gpus 2" in answers["OTHER_GPU"]["said"]


def test_operands_of_two_types_fail_as_they_would(answers):
    assert "to have the same dtype, but got bfloat16 and float32" in answers["TWO_TYPES"]["said"]


def test_a_search_for_the_batch_ends(answers):
    doc = captured(answers, "LOOKS_FOR_BATCH")
    assert found(doc)["batch"] == 25 and "the script catches the end of memory" in notes(doc)


def test_pieces_of_sequences_are_no_parts_of_the_batch(answers):
    doc = captured(answers, "IN_PIECES")
    assert (found(doc)["batch"], found(doc)["accumulate"], doc["dimensions"][0]["default"]) == (20, 3, 20)
    assert "is taken in" not in notes(doc)


def test_parameters_that_can_be_walked_once(answers):
    doc = captured(answers, "SECOND_ORDER")
    assert all("gradient" in row for row in doc["parameters"]) and found(doc)["batch"] == 20


def test_an_evaluation_behind_each_step_is_no_forward_of_the_next(answers):
    doc = captured(answers, "EVALUATES")
    assert not {"zero-grad-between", "zero-grad-after"} & set(found(doc))
    assert "before each step the script runs 5 operators on the device that no step needs" in notes(doc)


def test_an_optimizer_that_calls_for_the_loss(answers):
    doc = captured(answers, "BY_CLOSURE")
    assert (doc["optimizer"]["name"], doc["optimizer"]["groups"][0]["history_size"]) == ("lbfgs", 7)
    assert "LBFGS evaluates the loss up to 20 times in a step; one of them is the step here" in notes(doc)
    assert "taken for adam" not in notes(doc)


@pytest.mark.parametrize(("whole", "size", "count", "split"), [
    (64, 16, 4, True), (67, 16, 4, True),  # the last samples are dropped
    (20, 20, 3, False), (20, 10, 10, False),  # pieces of sequences, batch first and time first
    (100, 32, 4, True), (100, 32, 5, False), (20, 40, 2, False), (None, 16, 4, False)])
def test_parts_that_make_up_the_loaders_batch(whole, size, count, split):
    parts = micro_batches.Parts(count, True, size, 1, sites.Site("train.py", 9))
    assert parts.are_of_one_batch(whole) is split
