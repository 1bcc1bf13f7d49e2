"""Scripts that end, wait, ask or take in ways that a capture has to say something about."""

HEAD = """
import os, sys, time
import torch
from torch import nn
net = nn.Linear(64, 8)
data = torch.utils.data.TensorDataset(torch.rand(200, 64), torch.randint(8, (200,)))
loader = torch.utils.data.DataLoader(data, batch_size=10)
def train(net):
    net = net.cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for x, y in loader:
        loss = nn.functional.cross_entropy(net(x.cuda()), y.cuda())
        optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# Trains, whatever else it does.
DAEMON = HEAD + """
if os.fork():
    sys.exit(0)
os.setsid()
if os.fork():
    os._exit(0)
train(net)
"""
CHILD = HEAD + """
pid = os.fork()
if pid == 0:
    train(net)
os.waitpid(pid, 0)
"""
LEAVES = HEAD + """
try:
    train(net)
finally:
    os._exit(1)
"""
LEAVES_EARLY = HEAD + """
net.cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
nn.functional.cross_entropy(net(torch.rand(10, 64).cuda()), torch.zeros(10, dtype=torch.long).cuda()).backward()
optimizer.step()
os._exit(0)
"""
BEHIND = HEAD + """
import threading
threading.Thread(target=train, args=(net,)).start()
"""
STARTS_ITSELF = """
import os, sys
if os.environ.get('READY') != '1':
    os.environ['READY'] = '1'
    os.execv(sys.executable, [sys.executable, *sys.argv])
""" + HEAD + "train(net)\n"
ASKS_AND_GOES_ON = HEAD + """
try:
    input('Press Enter to start')
except EOFError:
    pass
train(net)
"""

# Do not.
BECOMES_ANOTHER = HEAD + "os.execvp('python', ['python', 'other.py', '--lr', '1'])\n"
STARTS_ITSELF_FOR_EVER = "import os, sys\nos.execv(sys.executable, [sys.executable, *sys.argv])\n"
ENDS_AT_ONCE = HEAD + "os._exit(4)\n"
READS_JSON = HEAD + "import json\nsettings = json.load(sys.stdin)\n"
STOPS_TO_DEBUG = HEAD + "breakpoint()\n"
WANTS_VARIABLE = HEAD + "root = os.environ['MY_DATA_ROOT']\n"
WANTS_ARGUMENT = HEAD + "root = sys.argv[1]\n"
WANTS_OPTION = HEAD + """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument('--root', required=True)
parser.parse_args()
"""
WAITS = HEAD + """
while not os.path.exists('go'):
    time.sleep(0.1)
"""
TRIES_AGAIN = HEAD + """
while True:
    try:
        net.missing()
    except BaseException:
        time.sleep(0.1)
"""
COUNTS_GPUS = HEAD + "assert torch.cuda.device_count() == 2, 'this needs 2 GPUs'\n"
LEAVES_FOR_GPUS = HEAD + "if torch.accelerator.device_count() < 2:\n    print('2 GPUs, please')\n    sys.exit()\n"
FAULTS = HEAD + "import ctypes\nctypes.string_at(0)\n"
SHARES_MEMORY = HEAD + """
kept = []
while True:
    kept.append(torch.ones(1 << 24).share_memory_())
"""
FORKS_TAKE_MEMORY = HEAD + """
for _ in range(4):
    if os.fork() == 0:
        kept = [torch.ones(1 << 23) for _ in range(12)]
        time.sleep(600)
time.sleep(600)
"""

_WRONG = """
import torch
from torch import nn
net = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)).cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
data = torch.utils.data.TensorDataset(torch.rand(400, 64), torch.randint(8, (400,)))
carried = torch.zeros(32, device='cuda')
def forward(x): return net(x.cuda())
for x, y in torch.utils.data.DataLoader(data, batch_size=20):
    loss = nn.functional.cross_entropy(forward(x), y.cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""
MIXES_DEVICES = _WRONG.replace("net(x.cuda())", "net(x)")
OF_ANOTHER_WIDTH = _WRONG.replace("net(x.cuda())", "net(x.cuda()[:, :60])")
TRAINS_NOTHING = _WRONG.replace("optimizer =", "net.requires_grad_(False)\noptimizer =")
CARRIES_ITS_GRAPH = _WRONG.replace("forward(x), y", "forward(x) + net[2](carried), y").replace(
    "    loss =", "    carried = net[0](x.cuda()).mean(0) + carried\n    loss =")
