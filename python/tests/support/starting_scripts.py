"""Scripts that start programs in every way that Python has, save and load in every way, and split their batches."""

from odd_scripts import NET

LOOP = """
for x, y in torch.utils.data.DataLoader(data, batch_size=20):
    step(x, y)
"""

STARTS = NET + """
import asyncio, multiprocessing, pty
open('by_the_script', 'w').write('one two three')
def told(*words):
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout
assert told('cat', 'by_the_script') == 'one two three' and told('wc', '-w', 'by_the_script').split()[0] == '3'
assert os.popen('wc -w < by_the_script').read().strip() == '3'
python = sys.executable
write = "open('written_by_{}', 'w')"
assert os.spawnlp(os.P_WAIT, 'true', 'true') == 0 and os.spawnv(os.P_WAIT, '/bin/false', ['false']) == 1
os.waitpid(os.spawnv(os.P_NOWAIT, python, [python, '-c', write.format('spawn')]), 0)
os.waitpid(os.posix_spawn(python, [python, '-c', write.format('posix_spawn')], os.environ), 0)
actions = [(os.POSIX_SPAWN_OPEN, 1, 'echoed', os.O_WRONLY | os.O_CREAT, 0o644)]
os.waitpid(os.posix_spawnp('echo', ['echo', 'said'], os.environ, file_actions=actions), 0)
assert open('echoed').read() == 'said\\n'
assert os.spawnvp(os.P_WAIT, 'rm', ['rm', '-rf', 'precious']) == 0
pty.spawn([python, '-c', write.format('pty')])
async def main():
    one = await asyncio.create_subprocess_exec('nvidia-smi', '--query-gpu=count', '--format=csv,noheader', stdout=subprocess.PIPE)
    two = await asyncio.create_subprocess_shell('rm -rf precious; touch made')
    count = (await one.communicate())[0]
    await two.wait()
    return int(count)
assert asyncio.run(main()) == 1 and os.path.exists('made')
def child(queue):
    open('written_by_process', 'w')
    queue.put(torch.cuda.get_device_name(0))
context = multiprocessing.context.SpawnContext()
queue = context.Queue()
process = context.Process(target=child, args=(queue,))
process.start()
assert queue.get() == torch.cuda.get_device_name(0)
process.join()
""" + LOOP

SAVES = NET + """
import copy, glob, io, pickle, shutil
state = {'net': net.state_dict(), 'optimizer': optimizer.state_dict(), 'epoch': 3}
def check(kept):
    assert kept['epoch'] == 3 and kept['net']['0.weight'].shape == (32, 64), kept
with open('by_object.pt', 'wb') as file:
    torch.save(state, file)
check(torch.load('by_object.pt'))
with open('by_object.pt', 'rb') as file:
    check(torch.load(file, map_location='cpu', weights_only=True))
buffer = io.BytesIO()
torch.save(state, buffer)
check(torch.load(io.BytesIO(buffer.getvalue())))
torch.save(state, 'part.tmp')
os.replace('part.tmp', 'last.pt')
shutil.copyfile('last.pt', 'best.pt')
check(torch.load('best.pt'))
check(torch.load(max(glob.glob('*.pt'), key=os.path.getmtime)))
check(pickle.loads(pickle.dumps(state)))
with open('state.pickle', 'wb') as file:
    pickle.dump(state, file)
check(pickle.load(open('state.pickle', 'rb')))
import numpy as np
np.save('weights.npy', net[0].weight.detach().cpu().numpy())
assert np.load('weights.npy').shape == (32, 64)
torch.save(net, 'whole.pt')
whole = torch.load('whole.pt', weights_only=False)
assert whole is not net and whole[0].weight.is_cuda and whole[0].weight is not net[0].weight
found = net.load_state_dict({**{k: v for k, v in state['net'].items() if k != '2.bias'}, 'more': torch.zeros(1)}, strict=False)
assert found.missing_keys == ['2.bias'] and found.unexpected_keys == ['more']
resume = 'last.pt' if os.path.isfile('last.pt') else None
optimizer.load_state_dict(torch.load(resume, map_location='cuda:0')['optimizer'])
""" + LOOP

SAFETENSORS = NET + """
from safetensors import safe_open
from safetensors.torch import load, load_file, load_model, save, save_file, save_model
save_file(net.state_dict(), 'net.safetensors', metadata={'format': 'pt'})
assert load_file('net.safetensors')['0.weight'].shape == (32, 64)
with safe_open('net.safetensors', framework='pt', device='cuda:0') as file:
    assert file.metadata() == {'format': 'pt'} and file.get_tensor('2.bias').is_cuda and '0.bias' in file.keys()
save_model(net, 'model.safetensors')
assert load_model(net, 'model.safetensors') == (set(), [])
assert load(save(net.state_dict()))['0.bias'].shape == (32,)
""" + LOOP

MISFIT = NET + """
torch.save(nn.Linear(3, 3).state_dict(), 'other.pt')
net.load_state_dict(torch.load('other.pt'))
""" + LOOP

CHUNKED = NET + """
for x, y in torch.utils.data.DataLoader(data, batch_size=64, drop_last=True):
    optimizer.zero_grad()
    for part, target in zip(x.cuda().chunk(4), y.cuda().chunk(4)):
        loss = nn.functional.cross_entropy(net(part), target) / 4
        loss.backward()
    optimizer.step()
"""

SLICED = NET + """
micro = 16
for x, y in torch.utils.data.DataLoader(data, batch_size=64, drop_last=True):
    optimizer.zero_grad()
    for start in range(0, len(x), micro):
        part, target = x[start:start + micro].cuda(), y[start:start + micro].cuda()
        (nn.functional.cross_entropy(net(part), target) / (len(x) // micro)).backward()
    optimizer.step()
"""

FIXED_SLICES = SLICED.replace("range(0, len(x), micro)", "range(0, 64, micro)")

EVALUATES_BESIDE = NET + """
import queue
wanted, other = queue.Queue(), nn.Sequential(nn.Linear(64, 4096), nn.Linear(4096, 8)).cuda()
def evaluate():
    while (x := wanted.get()) is not None:
        with torch.no_grad():
            for _ in range(5):
                other(x)
thread = threading.Thread(target=evaluate)
thread.start()
for x, y in torch.utils.data.DataLoader(data, batch_size=20):
    wanted.put(x.cuda())
    step(x, y)
wanted.put(None)
thread.join()
"""

SIDE_BY_SIDE = NET + """
replicas = [net, nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)).cuda()]
optimizer = torch.optim.SGD([p for r in replicas for p in r.parameters()], lr=0.1)
both, losses = threading.Barrier(2), [None, None]
def run(i, x, y):
    out = replicas[i](x)
    both.wait()
    losses[i] = nn.functional.cross_entropy(out, y)
for x, y in torch.utils.data.DataLoader(data, batch_size=20):
    threads = [threading.Thread(target=run, args=(i, x.cuda(), y.cuda())) for i in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    optimizer.zero_grad(); sum(losses).backward(); optimizer.step()
"""

IN_A_POOL = NET + """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(3)
for x, y in torch.utils.data.DataLoader(data, batch_size=20):
    pool.submit(step, x, y).result()
"""

PROBED = """
import os, subprocess
import torch
os.system('rm -rf precious')
subprocess.run(['cp', 'train.py', 'copied.py'], check=True)
os.spawnvp(os.P_WAIT, 'rm', ['rm', '-rf', 'precious'])
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(100, 8)), batch_size=4)
for (x,) in loader:
    pass
"""

POOL_EVALUATES = NET + """
import copy
from concurrent.futures import ThreadPoolExecutor
pool, waiting = ThreadPoolExecutor(2), []
def evaluate(model):
    model.eval()
    with torch.no_grad():
        return sum(model(x.cuda()).view(len(x), 2, 4).flatten(1).argmax(1).eq(y.cuda()).sum().item()
                   for x, y in torch.utils.data.DataLoader(data, batch_size=40))
for epoch in range(3):
    for i, (x, y) in enumerate(torch.utils.data.DataLoader(data, batch_size=20)):
        step(x, y)
        if i % 2 == 0:
            waiting.append(pool.submit(evaluate, copy.deepcopy(net)))
print([one.result() for one in waiting])
"""
