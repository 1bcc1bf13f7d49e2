"""Scripts with habits that reach beyond PyTorch: commands, threads, packages, command lines of their own."""

NET = """
import os, subprocess, sys, threading
import torch
from torch import nn
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)).cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
data = torch.utils.data.TensorDataset(torch.rand(400, 64), torch.randint(8, (400,)))
def step(x, y):
    loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    return loss
"""

COMMANDS = NET + """
os.system('mkdir -p runs/one && touch made')
open('runs/one/log.txt', 'w').write('begun')
subprocess.run(['rm', '-rf', 'precious'], check=True)
subprocess.run(f'{sys.executable} -c "open(\\'by_a_child\\', \\'w\\')"', shell=True, stderr=subprocess.DEVNULL)
rows = subprocess.check_output(['nvidia-smi', '--query-gpu=index,memory.free', '--format=csv,noheader,nounits'], text=True)
index, free = (int(part) for part in rows.splitlines()[0].split(','))
os.system('nvidia-smi -q -d Memory | grep Free > free.txt')
assert int(open('free.txt').read().split()[2]) == free
assert subprocess.run(['echo', 'said'], capture_output=True, text=True).stdout == 'said\\n'
loader = torch.utils.data.DataLoader(data, batch_size=free // 1024 + index)
for x, y in loader:
    step(x, y)
"""

LAUNCHER = """
import subprocess, sys
subprocess.run([sys.executable, 'inner.py', '--lr', '0.1'], check=True)
"""

THREADED = NET + """
import queue
ready = queue.Queue(maxsize=2)
def prefetch():
    for x, y in torch.utils.data.DataLoader(data, batch_size=20):
        ready.put((x.to('cuda'), y.to('cuda')))
    ready.put(None)
def train():
    threading.Thread(target=prefetch, daemon=True).start()
    while (batch := ready.get()) is not None:
        step(*batch)
worker = threading.Thread(target=train)
worker.start()
worker.join()
"""

STEPS_INSIDE = NET + """
each = {p: torch.optim.SGD([p], lr=0.1, momentum=0.9) for p in net.parameters()}
def hook(parameter):
    each[parameter].step()
    each[parameter].zero_grad()
for p in net.parameters():
    p.register_post_accumulate_grad_hook(hook)
for x, y in torch.utils.data.DataLoader(data, batch_size=20):
    nn.functional.cross_entropy(net(x.cuda()), y.cuda()).backward()
"""

SHARPNESS = NET + """
class SAM(torch.optim.Optimizer):
    def __init__(self, params, **options):
        super().__init__(params, dict(rho=0.05, **options))
        self.base = torch.optim.SGD(self.param_groups, **options)
        self.param_groups = self.base.param_groups
    @torch.no_grad()
    def first_step(self):
        for group in self.param_groups:
            for p in group['params']:
                self.state[p]['old'] = p.data.clone()
                p.add_(p.grad, alpha=0.05)
        self.zero_grad()
    @torch.no_grad()
    def second_step(self):
        for group in self.param_groups:
            for p in group['params']:
                p.data = self.state[p]['old']
        self.base.step()
        self.zero_grad()
sam = SAM(net.parameters(), lr=0.1, momentum=0.9)
del optimizer
for x, y in torch.utils.data.DataLoader(data, batch_size=10):
    x, y = x.cuda(), y.cuda()
    nn.functional.cross_entropy(net(x), y).backward()
    sam.first_step()
    nn.functional.cross_entropy(net(x), y).backward()
    sam.second_step()
"""

TRITON = """
import torch, triton
import triton.language as tl
@triton.jit
def square_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    out = y_ptr + offsets
    x = tl.load(x_ptr + offsets, mask=offsets < n)
    tl.store(out, x * x, mask=offsets < n)
class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        y = torch.empty_like(x)
        square_kernel[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
        return y
    @staticmethod
    def backward(ctx, gradient):
        return 2 * gradient * ctx.saved_tensors[0]
net = torch.nn.Linear(64, 8).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
batch_size = 12
for i in range(9):
    loss = Square.apply(net(torch.randn(batch_size, 64, device='cuda'))).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

OWN_WORDS = NET.replace("import os", "import json, os") + """
config = json.load(open('config.json')) if os.path.exists('config.json') else {}
given = dict(word.lstrip('-').split('=') for word in sys.argv[1:])
many = int(given.get('batch-size', os.environ.get('BATCH_SIZE', config.get('train', {}).get('batch_size', 0))))
for i in range(12):
    step(torch.rand(many, 64), torch.randint(8, (many,)))
"""

GATHERING = """
import os
import torch
import torch.distributed as dist
import torch.distributed.nn
from torch import nn
dist.init_process_group('nccl')
torch.cuda.set_device(int(os.environ['LOCAL_RANK']))
net = nn.parallel.DistributedDataParallel(nn.Linear(64, 16).cuda(), device_ids=[0])
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
rank = dist.get_rank(group=None)
for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(400, 64)), batch_size=16):
    mine = nn.functional.normalize(net(x.cuda()), dim=-1)
    every = torch.cat(torch.distributed.nn.all_gather(mine))
    loss = nn.functional.cross_entropy(mine @ every.T, torch.arange(len(mine), device='cuda') + rank * len(mine))
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

RESUMED = NET + """
import copy, io
path = 'checkpoints/first.pt'
os.makedirs('checkpoints', exist_ok=True)
torch.save({'net': net.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': 3}, path)
assert os.path.exists(path)
kept = torch.load(path, map_location='cpu')
assert kept['epoch'] == 3 and kept['net']['0.weight'].device.type == 'cpu' and kept['net']['0.weight'].shape == (32, 64)
net.load_state_dict(torch.load(path, map_location='cuda', weights_only=True)['net'])
optimizer.load_state_dict(kept['optimizer'])
buffer = io.BytesIO()
torch.save(torch.arange(3), buffer)
buffer.seek(0)
assert torch.load(buffer).tolist() == [0, 1, 2]
for x, y in torch.utils.data.DataLoader(data, batch_size=20):
    step(x, y)
"""

ROLLOUT = NET + """
rollout, parts = 64, 4
minibatch_size = int(rollout // parts)
x, y = torch.rand(rollout, 64).cuda(), torch.randint(8, (rollout,)).cuda()
for epoch in range(4):
    order = torch.randperm(rollout)
    for start in range(0, rollout, minibatch_size):
        chosen = order[start:start + minibatch_size].numpy()
        loss = nn.functional.cross_entropy(net(x[chosen]), y[chosen])
        optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

CONTRASTIVE = NET.replace("import os", "import argparse, os") + """
parser = argparse.ArgumentParser()
parser.add_argument('--batch-size', type=int, default=24)
args = parser.parse_args()
same = torch.cat([torch.arange(args.batch_size)] * 2)
for x, y in torch.utils.data.DataLoader(data, batch_size=args.batch_size, drop_last=True):
    z = nn.functional.normalize(net(torch.cat([x, x + 0.1]).cuda()), dim=1)
    alike = z @ z.T
    labels = (same[:, None] == same[None]).float().cuda()
    outside = ~torch.eye(len(same), dtype=torch.bool).cuda()
    loss = nn.functional.binary_cross_entropy_with_logits(alike.masked_fill(~outside, -9), labels)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

INFERENCE = NET + """
with torch.inference_mode():
    before = nn.functional.cross_entropy(net(data[:10][0].cuda()), data[:10][1].cuda())
    seen = torch.zeros((), device='cuda')
    seen += before
shares = net(data[:10][0].cuda()).softmax(1).detach().cpu().numpy()
assert abs(shares.sum(1) - 1).max() < 1e-5
print(before.item(), float(seen), seen.cpu().numpy(), bool(torch.isnan(before)))
for x, y in torch.utils.data.DataLoader(data, batch_size=20):
    step(x, y)
"""

TRANSFORMED = NET + """
from torch.func import functional_call, grad, vmap
def loss_of(parameters, x, y):
    return nn.functional.cross_entropy(functional_call(net, parameters, (x,)), y)
def task(parameters, x, y):
    first = grad(loss_of)(parameters, x, y)
    return loss_of({name: p - 0.01 * first[name] for name, p in parameters.items()}, x, y)
def tasks(batch_size):
    return torch.rand(batch_size, 5, 64).cuda(), torch.randint(8, (batch_size, 5)).cuda()
for i in range(9):
    loss = vmap(task, in_dims=(None, 0, 0))(dict(net.named_parameters()), *tasks(12)).mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

TAKES_TURNS = """
import torch
from torch import nn

device = 'cuda'
first, second = nn.Linear(16, 32).to(device), nn.Linear(32, 1).to(device)
opt_first, opt_second = torch.optim.Adam(first.parameters()), torch.optim.Adam(second.parameters())
batch_size = 12
for _ in range(20):
    noise = torch.randn(batch_size, 16, device=device)
    first.requires_grad_(False)
    second.requires_grad_(True)
    opt_second.zero_grad()
    second(first(noise)).mean().backward()
    opt_second.step()
    first.requires_grad_(True)
    second.requires_grad_(False)
    opt_first.zero_grad()
    (-second(first(noise)).mean()).backward()
    opt_first.step()
"""

IN_ITS_OWN_FOLDER = NET + """
import pathlib, shutil
folder = pathlib.Path('outputs/2026/first')
folder.mkdir(parents=True)
assert shutil.disk_usage('outputs').free > 0
os.chdir(folder)
pathlib.Path('log.txt').write_text('begun')
assert os.listdir() == ['log.txt'] and 'outputs' in open('../../../train.py').read()
os.makedirs('../../../precious/new')
open('../../../precious/new/b.txt', 'w').write('b')
assert open('../../../precious/new/b.txt').read() == 'b' and os.path.isfile('../../../precious/a.txt')
for x, y in torch.utils.data.DataLoader(data, batch_size=20):
    step(x, y)
"""
