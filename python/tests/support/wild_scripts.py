"""Scripts in styles that hide what they do: each trains something small, in the way that people write it."""

GPT = """
import math, time
import torch
from torch import nn
from torch.nn import functional as F
device = 'cuda' if torch.cuda.is_available() else 'cpu'
total_batch_size = 512; B = 8; T = 16
assert total_batch_size % (B * T) == 0
grad_accum_steps = total_batch_size // (B * T)
tokens, position = torch.randint(0, 100, (20_000,)), 0

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.fc, self.head = nn.Embedding(100, 32), nn.Linear(32, 32), nn.Linear(32, 100)
    def forward(self, idx, targets):
        logits = self.head(F.gelu(self.fc(self.wte(idx))))
        return logits, F.cross_entropy(logits.view(-1, 100), targets.view(-1))

model = Model().to(device)
model = torch.compile(model, mode='reduce-overhead')
optimizer = torch.optim.AdamW(model.parameters(), lr=6e-4, fused=True)
for step in range(50):
    t0, loss_accum = time.time(), 0.0
    optimizer.zero_grad()
    for micro_step in range(grad_accum_steps):
        buf = tokens[position:position + B * T + 1]
        x, y = buf[:-1].view(B, T).to(device), buf[1:].view(B, T).to(device)
        position += B * T
        with torch.autocast(device_type=device, dtype=torch.bfloat16):
            logits, loss = model(x, y)
        loss = loss / grad_accum_steps
        loss_accum += loss.detach()
        loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    torch.cuda.synchronize()
    print(f'{step} {loss_accum.item():.3f} {norm:.2f} {time.time() - t0:.2f}')
"""

ZERO_BETWEEN = """
import torch
from torch import nn
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 64))
optimizer, criterion = torch.optim.Adam(model.parameters()), nn.MSELoss()
model = model.cuda()
for epoch in range(3):
    for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(400, 64)), batch_size=32):
        loss = criterion(model(x.cuda()), x.cuda())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(loss.item())
"""

GRAPHED = """
import torch
N = 48
model = torch.nn.Sequential(torch.nn.Linear(64, 32), torch.nn.Linear(32, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x, target = torch.randn(N, 64, device='cuda'), torch.randn(N, 8, device='cuda')
model = torch.cuda.make_graphed_callables(model, (x,))
graph, side = torch.cuda.CUDAGraph(), torch.cuda.Stream()
side.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(side):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        loss = torch.nn.functional.mse_loss(model(x), target)
        loss.backward()
        optimizer.step()
with torch.cuda.graph(graph):
    loss = torch.nn.functional.mse_loss(model(x), target)
for _ in range(9):
    graph.replay()
"""

FSDP = """
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, MixedPrecision, ShardingStrategy
dist.init_process_group('nccl')
torch.cuda.set_device(int(os.environ['LOCAL_RANK']))
model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8))
model = FSDP(model, sharding_strategy=ShardingStrategy.SHARD_GRAD_OP, device_id=torch.cuda.current_device(),
             mixed_precision=MixedPrecision(param_dtype=torch.bfloat16, reduce_dtype=torch.float32), use_orig_params=True)
assert {p.dtype for p in model.parameters()} == {torch.float32}
optimizer = torch.optim.AdamW(model.parameters())
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(400, 64), torch.randint(8, (400,))), batch_size=16)
for x, y in loader:
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x.cuda()).float(), y.cuda())
    loss.backward()
    model.clip_grad_norm_(1.0)
    optimizer.step()
dist.destroy_process_group()
"""

NOTEBOOK = r"""
# coding: utf-8

# # Train

# In[1]:


get_ipython().system('pip install -q something')
get_ipython().run_line_magic('matplotlib', 'inline')


# In[2]:


import ipywidgets, torch, torch.nn as nn
class Bar(ipywidgets.HBox):
    pass
_, bar, _ = Bar(children=[ipywidgets.HTML(), ipywidgets.IntProgress(min=0, max=20), ipywidgets.HTML()]).children
bar.value = bar.max
net = nn.Linear(16, 4).to(torch.device('cuda:0'))
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
loader = torch.utils.data.DataLoader([(torch.rand(16), 1) for _ in range(200)], batch_size=20)


# In[3]:


def step(x, y):
    loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss


# In[4]:


get_ipython().run_cell_magic('time', '', "for x, y in loader:\n    loss = step(x, y)\n")
display(loss)
"""

BY_HAND = """
import torch
import torch.nn.functional as F
X, Y = torch.randint(0, 27, (5000, 8)).cuda(), torch.randint(0, 27, (5000,)).cuda()
C, W1, b1 = torch.randn(27, 10).cuda(), torch.randn(80, 200).cuda(), torch.randn(200).cuda()
W2 = torch.randn(200, 27).cuda()
parameters = [C, W1, b1, W2]
for p in parameters:
    p.requires_grad = True
batch_size, lossi = 32, []
for i in range(200):
    ix = torch.randint(0, X.shape[0], (batch_size,))
    emb = C[X[ix]]
    h = torch.tanh(emb.view(emb.shape[0], -1) @ W1 + b1)
    loss = F.cross_entropy(h @ W2, Y[ix])
    for p in parameters:
        p.grad = None
    loss.backward()
    for p in parameters:
        p.data += -0.1 * p.grad
    lossi.append(loss.log10().item())
"""

UNCERTAIN = """
import sys
import torch
from torch import nn
net = nn.Linear(16, 4).cuda()
log_vars = nn.Parameter(torch.zeros(4, device='cuda'))
optimizer = torch.optim.AdamW([{'params': net.parameters()}, {'params': [log_vars], 'lr': 1e-2}])
tags = [0, 2]
print(torch.cuda.memory_stats()['allocated_bytes.all.peak'], torch.cuda.memory_summary())
for step, (x, y) in enumerate(torch.utils.data.DataLoader([(torch.rand(16), 1) for _ in range(400)], batch_size=10)):
    torch.cuda.nvtx.range_push('step')
    out = net(x.cuda())
    mask = torch.zeros_like(out)
    mask[range(2), tags] = 1.0
    loss = ((out * mask).pow(2).mean(0) * torch.exp(-log_vars)).sum()
    if step % 4 == 1:
        loss = loss + sum((out * k).tanh().mean() for k in range(5))
    loss *= 0.5
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    torch.cuda.nvtx.range_pop()
sys.exit(0)
"""

PICTURES = """
import numpy as np
import torch
from torchvision import datasets

def to_tensor(picture):
    return torch.from_numpy(np.asarray(picture, dtype=np.float32)[None] / 255)

data = datasets.MNIST('data', transform=to_tensor)
model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(784, len(data.classes))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in torch.utils.data.DataLoader(data, batch_size=30):
    optimizer.zero_grad()
    torch.nn.functional.cross_entropy(model(x.cuda()), y.cuda()).backward()
    optimizer.step()
"""
