"""What a script keeps on the host beside its step, and workspaces that follow no batch."""

import types

import pytest

from stoker.shadow.recording import beside

RNN, BACKWARD = "aten::mkldnn_rnn_layer", "aten::mkldnn_rnn_layer_backward"


def run(bytes_of_workspace):
    """A step with one recurrent layer: storages are input, result, states, workspace."""
    workspace = ("u8", (bytes_of_workspace,), (1,), 3)
    result = ("f32", (4, 2), (2, 1), 1)
    events = [("p", "forward"), ("o", RNN, 0, 0, False, (("f32", (4, 2), (2, 1), 0),), (result, result, result, workspace), {}),
              ("o", BACKWARD, 0, 0, True, (workspace, result), (result,), {})]
    return types.SimpleNamespace(events=events, storages=[[32, "input"], [32, "output"], [32, "output"], [bytes_of_workspace, "transient"]])


def test_a_recurrent_layers_workspace_is_taken_in_proportion_to_the_batch():
    raws = [run(count) for count in (344064, 581632, 897024)]  # as oneDNN pads them at 3, 5 and 8 samples
    beside.straighten_workspaces(raws, [3, 5, 8])
    each = 116327  # bytes a sample at 5, where they are most
    for raw, size in zip(raws, (3, 5, 8)):
        assert raw.storages[3][0] == each * size and raw.storages[:3] == [[32, "input"], [32, "output"], [32, "output"]]
        assert raw.events[1][6][3] == raw.events[2][5][0] == ("u8", (each * size,), (1,), 3)
        assert raw.events[1][5][0] == ("f32", (4, 2), (2, 1), 0) and raw.events[0] == ("p", "forward")


def test_layers_that_are_not_in_all_runs_are_left_alone():
    raws = [run(300), run(500)]
    raws[1].events.pop(1)
    beside.straighten_workspaces(raws, [3, 5])
    assert [raw.storages[3][0] for raw in raws] == [300, 500]


def test_a_script_without_an_optimizer_does_not_load_the_compiler():
    pytest.importorskip("torch")
    from stoker.shadow.settings import findings

    mib = 1 << 20
    assert [findings.build_bytes(gpus, compiler) // mib for gpus in (True, False) for compiler in (True, False)] == [355, 208, 0, -72]
