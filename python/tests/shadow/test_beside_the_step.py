"""What lies on the GPU beside what is trained, and what a step computes beside its forward and backward: none of it is lost."""

import pytest
from test_scripts import found, line_of
from test_wild_styles import notes

import beside_scripts
import many_captures


@pytest.fixture(scope="module")
def answers(tmp_path_factory, on_cuda) -> dict:
    scripts = {name: text for name, text in vars(beside_scripts).items() if name.isupper() and isinstance(text, str) and name != "HEAD"
               and not name.startswith("_")}
    return many_captures.of(scripts, {}, tmp_path_factory.mktemp("beside"))


def captured(answers, name: str) -> dict:
    assert answers[name]["code"] == 0, answers[name]["said"]
    return answers[name]


def kept_bytes(doc, kind: str = "buffer") -> int:
    return sum(size for size, of in doc["storages"] if of == kind and isinstance(size, int))


def test_passes_of_a_teacher_are_part_of_each_step(answers):
    doc = captured(answers, "TEACHER")
    assert doc["operators"].count("aten::addmm") == 4
    assert kept_bytes(doc) == 4 * (64 * 4000 + 4000 + 4000 * 8 + 8)
    assert {row[0] if isinstance(row[0], int) else tuple(row[0]) for row in doc["storages"] if row[1] == "input"} == {("batch",)}


def test_passes_of_an_episode_are_no_part_of_the_step(answers):
    doc = captured(answers, "EPISODES")
    assert doc["operators"].count("aten::addmm") == 2 and "is more than was run" not in notes(doc)


def test_passes_that_were_not_run_are_said(answers):
    doc = captured(answers, "MANY_PASSES")
    line = line_of(beside_scripts.MANY_PASSES, "teacher(part)")
    assert f"train.py line {line}: what a step needs of passes without gradient is more than was run" in notes(doc)


def test_each_average_is_counted(answers):
    doc = captured(answers, "AVERAGES")
    assert doc["training"] == {"ema": True, "averages": ["", "", ""]}
    row = next(row for row in doc["script"]["found"] if row["setting"] == "ema")
    assert row["words"] == "3 copies of the model's weights (moving averages)"


def test_averages_that_functions_of_lists_write_are_counted(answers):
    doc = captured(answers, "LISTED")
    assert len(doc["training"]["averages"]) == 2
    row = next(row for row in doc["script"]["found"] if row["setting"] == "ema")
    assert row["words"] == "2 copies of the model's weights (moving averages)"


def test_an_average_of_one_network_is_none_of_the_other(answers):
    assert captured(answers, "ONE_AVERAGE")["training"] == {"ema": True, "averages": ["g"]}


def test_what_rests_on_the_gpu_is_counted(answers):
    doc = captured(answers, "AT_REST")
    resting = 4 * ((64 + 1) * (1 << 16) + (1 << 20))
    assert found(doc)["resident"] == resting
    buffer = next(row for row in doc["buffers"] if row["name"] == "kept beside the step")
    assert doc["storages"][buffer["storage"]] == [resting, "buffer"]
    assert kept_bytes(doc) == resting + 4 * (64 * 64 + 64)
    words = next(row["words"] for row in doc["script"]["found"] if row["setting"] == "resident")
    assert words == "20 MiB on the GPU beside the step (the largest: f32 65536x64)"


def test_what_rests_on_the_gpu_is_counted_once_where_sizes_grow_with_the_square(answers):
    doc = captured(answers, "PAIRS")
    assert doc["dimensions"][0]["degree"] == 2
    assert [row["value"] for row in doc["script"]["found"] if row["setting"] == "resident"] == [4 << 20]
    assert kept_bytes(doc) == 4 << 20


def test_nothing_rests_where_a_loop_keeps_what_it_trains(answers):
    assert all("resident" not in found(captured(answers, name)) for name in ("AVERAGES", "EPISODES", "KINDS", "TEACHER"))


def test_what_grows_with_each_step_is_said(answers):
    said = notes(captured(answers, "REPLAY"))
    assert "1 MiB that a step makes stay on the GPU when the next one is over" in said
    assert all("that a step makes stay" not in notes(captured(answers, name)) for name in ("AVERAGES", "EPISODES", "TEACHER"))


def test_optimizers_of_several_kinds_keep_their_own(answers):
    doc = captured(answers, "KINDS")
    assert doc["optimizer"]["name"] == "sgd"
    assert [group.get("optimizer") for group in doc["optimizer"]["groups"]] == [None, "adam"]
    assert [row["group"] for row in doc["parameters"]] == [0, 0, 1, 1]


def test_pieces_of_a_batch_of_which_the_last_is_smaller(answers):
    doc = captured(answers, "UNEQUAL")
    assert (found(doc)["batch"], found(doc)["accumulate"], doc["dimensions"][0]["default"]) == (32, 4, 32)
    assert "a batch of the DataLoader (100) is taken in 4 parts, the last of them smaller, whose gradients" in notes(doc)


def test_weights_that_get_another_tensor_are_counted_once(answers):
    doc = captured(answers, "RENEWED")
    assert kept_bytes(doc, "parameter") == 4 * (64 * 32 + 32 + 32 * 8 + 8) and not kept_bytes(doc) and not kept_bytes(doc, "input")


def test_sparse_gradients_hold_the_rows_that_a_batch_names(answers):
    doc = captured(answers, "SPARSE")
    assert [size for size, kind in doc["storages"] if kind == "gradient"] == [4 * 64 * 8, 4 * 8, {"batch": 8 + 4 * 64}]
    assert [(group.get("optimizer"), group.get("fused")) for group in doc["optimizer"]["groups"]] == [(None, True), ("adam", None)]


def test_products_of_an_optimizer_are_counted(answers):
    doc = captured(answers, "ORTHOGONAL")
    assert doc["optimizer"]["name"] == "lion"
    assert doc["operators"].count("stoker::product_kernel_") == 4
    assert "the optimizer's step multiplies matrices: its 4 products are counted at the end of the backward" in notes(doc)
    flops = {row[1][0] for row in doc["types"] if row[0] == "f64"}
    assert flops == {2 * 32 * 32 * 64, 2 * 8 * 8 * 32}


def test_pytorchs_muon_keeps_one_tensor_and_multiplies(answers):
    doc = captured(answers, "MUON")
    assert doc["optimizer"]["name"] == "lion" and doc["operators"].count("stoker::product_kernel_") == 2 * 5 * 3


def test_gradients_by_a_transform_and_no_optimizer_name_the_line_and_the_way_out(answers):
    line = line_of(beside_scripts.BY_TRANSFORM, "grad_and_value(")
    said = answers["BY_TRANSFORM"]["said"]
    assert f"train.py line {line} takes gradients by torch.func.grad_and_value, and no optimizer updates the weights by them" in said
    assert "parameter.grad = gradient; optimizer.step()" in said


def test_results_of_parts_that_are_only_counted_are_none_that_stay(answers):
    doc = captured(answers, "PARTS")
    assert found(doc)["accumulate"] == 6
    assert "resident" not in found(doc) and "stay on the GPU" not in notes(doc)
