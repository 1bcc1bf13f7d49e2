"""How often a script is run for one capture, and what a run leaves out because nobody would see it."""

import json
import os
import subprocess
import sys

import pytest

from places import PYTHON

DRIVER = """
import json
from stoker.errors import CaptureError
from stoker.shadow import command, runs

asked, start = [], runs.Runs.start


def noting(self, request):
    asked.append([request.batch, request.batch_by, request.saved is not None])
    return start(self, request)


runs.Runs.start = noting
try:
    doc, said = command.here("train.py", [], command.parser().parse_args(["train.py"]), lambda text: None), ""
except CaptureError as error:
    doc, said = None, f"{getattr(error, 'traceback_text', '')} {error}"
print(json.dumps({"asked": asked, "said": said, "doc": doc}))
"""

HEAD = """
import threading, time
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)

    def forward(self, x, y):
        q, k, v = self.qkv(x).view(*x.shape[:2], 3, 2, 8).permute(2, 0, 3, 1, 4)
        out = self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(x.shape))
        return F.mse_loss(out, y)


batch_size = 4
def batch():
    return (torch.randn(batch_size, 6, 16).to("cuda") for _ in range(2))
model = Attention().to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""

STEPS = """
for step in range(5):
    model(*batch()).backward()
    optimizer.step()
    optimizer.zero_grad()
"""

# A validation of many batches before the first step, and a progress bar's thread that starts while the step is compiled.
COMPILED = HEAD + """
from torch._dynamo.utils import counters
model = torch.compile(model)
with torch.no_grad():
    losses = [model(*batch()).item() for _ in range(20)]
assert losses == [1.0] * 20, losses
assert not counters["frames"], counters["frames"]
traced = torch.fx.Interpreter.run
def with_a_thread(self, *args, **kwargs):
    threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
    return traced(self, *args, **kwargs)
torch.fx.Interpreter.run = with_a_thread
""" + STEPS.replace("optimizer.zero_grad()", 'optimizer.zero_grad()\n    assert counters["frames"]["total"] == 1, counters["frames"]')

THREAD = HEAD + """
before = F.scaled_dot_product_attention
thread = threading.Thread(target=time.sleep, args=(60,), daemon=True)
thread.start()
assert F.scaled_dot_product_attention == before
""" + STEPS

# As a library's mapping from names to classes, each of which is imported when it is asked for.
LAZY = HEAD + """
import collections
class Lazy(collections.OrderedDict):
    def __len__(self):
        return 500
    def values(self):
        raise ValueError("nobody asked for them")
    __iter__ = items = values
lazy, names = Lazy(), [Lazy()]
""" + STEPS

FAILS = HEAD + "model(*batch()).no_such_method()\n"

# Batches of three of which the script wants none: it may run with its own.
PICKY = HEAD + """
for x, y in DataLoader(TensorDataset(torch.randn(64, 6, 16), torch.randn(64, 6, 16)), batch_size=4):
    assert len(x) % 4 == 0, "batches of four alone"
    model(x.to("cuda"), y.to("cuda")).backward()
    optimizer.step()
    optimizer.zero_grad()
"""


# All on the CPU: a run for the GPU ends before it computes a loss.
ON_CPU = HEAD.replace('"cuda"', '"cpu"') + """
def closure():
    assert ON_CPU_ALONE, "a loss was computed for nothing"
    loss = model(*batch())
    loss.backward()
    return loss
for step in range(5):
    STEP
    optimizer.zero_grad()
""".replace("ON_CPU_ALONE", "not torch.cuda.is_available()")
STEP_OF_CPU = """loss = model(*batch())
    loss.register_hook(lambda g: 1 / (not torch.cuda.is_available()) and None)
    loss.backward(), optimizer.step()"""


def captured(folder, text):
    (folder / "train.py").write_text(text)
    done = subprocess.run([sys.executable, "-c", DRIVER], cwd=folder, capture_output=True, text=True,
                          env=dict(os.environ, PYTHONPATH=str(PYTHON)))
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("text", [THREAD, LAZY])
def test_a_script_without_a_loader_is_run_once_as_it_is(tmp_path, on_cuda, text):
    answer = captured(tmp_path, text)
    assert answer["said"] == ""
    assert answer["asked"] == [[3, "loader", False], *([batch, "variable:batch_size", False] for batch in (3, 5, 8))]
    assert answer["doc"]["dimensions"][0]["default"] == 4


def test_a_compiled_script_is_compiled_once_in_a_run_and_not_for_what_precedes_its_steps(tmp_path, on_cuda):
    answer = captured(tmp_path, COMPILED)
    assert answer["said"] == "" and answer["doc"]["compiled"] == {"by": "inductor", "graphs": 2}
    by = "variable:batch_size"  # the first run finds it and compiles nothing; the largest batch decides what graphs keep
    assert answer["asked"] == [[3, "loader", False], [8, by, False], [3, by, True], [5, by, True]]
    assert [(row["operator"], row["answer"], row["count"]) for row in answer["doc"]["script"]["reads"]] == [("item", "1.0", 20)]


@pytest.mark.parametrize(("text", "batches"), [(FAILS, [3]), (PICKY, [3, 4, 8, 16])])
def test_a_script_that_fails_whatever_the_batch_is_run_once(tmp_path, on_cuda, text, batches):
    answer = captured(tmp_path, text)
    assert [row[0] for row in answer["asked"]] == batches
    assert (answer["doc"] is None) == (text is FAILS)
    assert ("no_such_method" in answer["said"]) == (text is FAILS)


@pytest.mark.parametrize("step", ["optimizer.step(closure)", STEP_OF_CPU])
def test_a_script_of_the_cpu_computes_nothing_in_the_run_for_the_gpu(tmp_path, on_cuda, step):
    answer = captured(tmp_path, ON_CPU.replace("STEP", step))
    assert answer["said"] == "" and answer["doc"]["provenance"]["capture"] == "fake-cpu"
    assert [row[0] for row in answer["asked"]][:2] == [3, 3] and answer["doc"]["dimensions"][0]["default"] == 4
    assert any("trains on the CPU" in note for note in answer["doc"]["diagnostics"]["unfaithful"])
