"""A step file that was captured from a script: a forecast of it takes over what was found there."""

import json
import subprocess

from test_scripts import captured

from stoker_binary import STOKER

SCRIPT = """
import os
import torch
from torch.utils.data import DataLoader, TensorDataset
os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
torch.distributed.init_process_group("nccl", rank=0, world_size=1)
data = TensorDataset(torch.rand(400, 256), torch.rand(400, 4))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(256, 1 << 12).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(DataLoader(data, batch_size=20, num_workers=3)):
    (model(x.cuda()).mean() / 4).backward()
    if (i + 1) % 4 == 0:
        optimizer.step()
        optimizer.zero_grad()
"""


def test_settings_of_the_script_and_buckets_of_ddp_on_one_gpu(tmp_path, on_cuda):
    captured(tmp_path, SCRIPT)

    def forecast(*flags):
        words = [str(STOKER), "predict", "out.step.gz", "--gpu", "a100-40gb", "--json", *flags]
        return json.loads(subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True).stdout)

    report = forecast()
    assert (report["settings"]["batch"], report["settings"]["accumulate"], report["settings"]["workers"]) == (20, 4, 3)
    assert report["settings"]["zero_grad_before_forward"] is False
    assert [words for words in report["assumed"] if words.startswith("found in train.py: DistributedDataParallel (line 8)")]
    assert report["memory"]["at_peak_bytes"]["communication_buffers"] >= (256 + 1) * (1 << 12) * 4
    overruled = forecast("--accumulate", "2", "--workers", "0")
    assert (overruled["settings"]["accumulate"], overruled["settings"]["workers"]) == (2, 0)
