"""Scripts as people write them, for tests: each trains something small."""

HEAD = """
import argparse, os, sys
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv, self.bn = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.drop, self.fc = nn.Dropout(0.1), nn.Linear(8, 10)
    def forward(self, x):
        x = F.relu(self.bn(self.conv(x))).mean((2, 3))
        return self.fc(self.drop(x))

device = torch.device('cuda' if torch.cuda.is_available() else 'cpu')
data = TensorDataset(torch.randn(200, 3, 16, 16), torch.randint(10, (200,)))
"""

CLASSIFIER = HEAD + """
def capture():
    import stoker
    model = Net()
    return stoker.Capture(model, torch.empty(16, 3, 16, 16), nn.CrossEntropyLoss(),
                          optimizer=torch.optim.AdamW(model.parameters(), lr=0.01))

if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--batch-size', type=int, default=16)
    parser.add_argument('--epochs', type=int, required=True)
    args = parser.parse_args()
    loader = DataLoader(data, batch_size=args.batch_size, shuffle=True, num_workers=2, pin_memory=True, prefetch_factor=4)
    model = Net().to(device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    criterion = nn.CrossEntropyLoss()
    best = 0
    for epoch in range(args.epochs):
        model.train()
        for x, y in loader:
            x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
            optimizer.zero_grad()
            out = model(x)
            loss = criterion(out, y)
            loss.backward()
            optimizer.step()
            if torch.isnan(loss):
                raise ValueError('diverged')
            print(f'{epoch} {loss.item():.3f} {(out.argmax(1) == y).float().mean().cpu().numpy()}')
        torch.save(model.state_dict(), 'model.pt')
        open('log.txt', 'a').write('epoch\\n')
"""

ACCUMULATING = HEAD + """
loader = DataLoader(data, batch_size=4, drop_last=True)
model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scaler = torch.amp.GradScaler('cuda')
@torch.no_grad()
def evaluate():
    model.eval()
    total = sum(F.cross_entropy(model(x.cuda()), y.cuda()).item() for x, y in loader)
    model.train()
    return total
print(evaluate())
for epoch in range(2):
    for i, (x, y) in enumerate(loader):
        with torch.autocast('cuda', dtype=torch.float16):
            loss = F.cross_entropy(model(x.cuda()), y.cuda()) / 4
        scaler.scale(loss).backward()
        if (i + 1) % 4 == 0:
            scaler.unscale_(optimizer)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            optimizer.zero_grad(set_to_none=True)
"""

GAN = HEAD + """
netG = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 64)).to(device)
netD = nn.Sequential(nn.Linear(64, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1)).to(device)
optG = torch.optim.Adam(netG.parameters(), lr=1e-3)
optD = torch.optim.Adam(netD.parameters(), lr=1e-3)
loader = DataLoader(TensorDataset(torch.randn(100, 64)), batch_size=10)
for epoch in range(3):
    for (real,) in loader:
        real = real.to(device)
        ones = torch.full((real.size(0), 1), 1., device=device)
        netD.zero_grad()
        lossD = F.binary_cross_entropy_with_logits(netD(real), ones)
        lossD.backward()
        fake = netG(torch.randn(real.size(0), 8, device=device))
        F.binary_cross_entropy_with_logits(netD(fake.detach()), ones * 0).backward()
        optD.step()
        netG.zero_grad()
        F.binary_cross_entropy_with_logits(netD(fake), ones).backward()
        optG.step()
"""

BY_ARGUMENT = HEAD + """
parser = argparse.ArgumentParser()
parser.add_argument('--batch_size', type=int, default=12)
parser.add_argument('--eval_batch_size', type=int, default=7)
args = parser.parse_args()
model = nn.LSTM(20, 30, batch_first=True).to(device)
head = nn.Linear(30, 5).to(device)
tokens = torch.randn(1000, 6, 20)
optimizer = torch.optim.Adam([*model.parameters(), *head.parameters()])
for i in range(10):
    x = tokens[torch.randint(1000, (args.batch_size,))].pin_memory().to(device, non_blocking=True)
    out, (h, c) = model(x)
    loss = head(out[:, -1]).pow(2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

WITHOUT_OPTIMIZER = HEAD + """
model = Net().to(device)
for i in range(5):
    for x, y in DataLoader(data, batch_size=8):
        model.zero_grad()
        loss = F.cross_entropy(model(x.to(device)), y.to(device))
        loss.backward()
        with torch.no_grad():
            for p in model.parameters():
                p -= 0.1 * p.grad
        if loss < 1e-3:
            sys.exit('done')
"""

ON_CPU = HEAD.replace("'cuda' if torch.cuda.is_available() else 'cpu'", "'cpu'") + """
model = Net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8):
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
"""

RANKS = HEAD + """
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel as DDP
from torch.utils.data.distributed import DistributedSampler
rank = int(os.environ['LOCAL_RANK'])
dist.init_process_group('nccl')
torch.cuda.set_device(rank)
model = DDP(Net().to(rank), device_ids=[rank])
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
for epoch in range(2):
    for x, y in loader:
        loss = F.cross_entropy(model(x.to(rank)), y.to(f'cuda:{rank}'))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        dist.all_reduce(loss)
dist.destroy_process_group()
"""

NEVER_TRAINS = HEAD + "print('nothing to do')\n"
FAILS = HEAD + "def load():\n    return open('/nowhere/data.bin')\nload()\n"
ENDS_ITSELF = HEAD + "os._exit(9)\n"
SWALLOWS = HEAD + """
while True:
    try:
        raise ValueError('x')
    except:
        pass
"""

# Sentences of several lengths, padded to the longest of a batch and packed.
SENTENCES = """
import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

class Sentences(torch.utils.data.Dataset):
    def __len__(self):
        return 40
    def __getitem__(self, i):
        return torch.full((3 + i,), i), i % 2

def collate(rows):
    words, labels = zip(*rows)
    return pad_sequence(words, batch_first=True), torch.tensor([len(w) for w in words]), torch.tensor(labels)

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed, self.rnn, self.fc = nn.Embedding(50, 8), nn.LSTM(8, 16, batch_first=True), nn.Linear(16, 2)
    def forward(self, words, lengths):
        packed = pack_padded_sequence(self.embed(words), lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, _ = pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.fc(out[:, -1])

model = Net().cuda()
optimizer = torch.optim.Adam(model.parameters())
for words, lengths, labels in torch.utils.data.DataLoader(Sentences(), batch_size=4, shuffle=True, collate_fn=collate):
    loss = nn.functional.cross_entropy(model(words.cuda(), lengths.cuda()), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

# A moving average of the weights, and a validation that comes after the epoch.
AVERAGED = HEAD + """
import copy
model = Net().cuda()
average = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
training = DataLoader(data, batch_size=8, shuffle=True)
validation = DataLoader(TensorDataset(torch.randn(96, 3, 16, 16)), batch_size=32)
for x, y in training:
    optimizer.zero_grad()
    F.cross_entropy(model(x.cuda()), y.cuda()).backward()
    optimizer.step()
    with torch.no_grad():
        for kept, p in zip(average.parameters(), model.parameters()):
            kept.lerp_(p, 0.01)
with torch.no_grad():
    for x, in validation:
        average(x.cuda())
"""

MISSING_DATA = HEAD + """
from torchvision import datasets, transforms
data = datasets.ImageFolder('/nowhere/train', transforms.Compose([transforms.RandomHorizontalFlip(), transforms.ToTensor()]))
model = Net().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    F.cross_entropy(model(x.cuda()), y.cuda()).backward()
    optimizer.step()
"""

# Trains in a process that it starts itself; hides or names GPUs.
FORKING = HEAD + """
import torch.multiprocessing as mp
def train(rank):
    model = Net().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for x, y in DataLoader(data, batch_size=8):
        optimizer.zero_grad()
        F.cross_entropy(model(x.cuda()), y.cuda()).backward()
        optimizer.step()
if __name__ == '__main__':
    mp.set_start_method('spawn')
    process = mp.Process(target=train, args=(0,))
    process.start()
    process.join()
"""
HIDES_GPUS = CLASSIFIER.replace("import torch\n", "os.environ['CUDA_VISIBLE_DEVICES'] = '-1'\nimport torch\n", 1)
SECOND_GPU = HEAD + "model = Net().to('cuda:1')\n"
READS_INPUT = HEAD + "name = input('which model? ')\n"

# A batch that has to be even, values of the host's data that decide, old names of types, an optimizer of its own.
PARTICULAR = HEAD + """
class Momentum(torch.optim.Optimizer):
    def __init__(self, parameters):
        super().__init__(parameters, dict(lr=0.1))
    def step(self):
        for group in self.param_groups:
            for p in group['params']:
                if p.grad is not None:
                    kept = self.state[p].setdefault('kept', torch.zeros_like(p))
                    kept.mul_(0.9).add_(p.grad)
                    p.data.add_(kept, alpha=-group['lr'])

assert torch.cuda.is_bf16_supported() and not torch.cuda.is_bf16_supported(including_emulation=False)
model = nn.SyncBatchNorm.convert_sync_batchnorm(Net()).cuda()
optimizer = Momentum(model.parameters())
for x, y in DataLoader(data, batch_size=6, drop_last=True):
    assert len(x) % 2 == 0, 'an even batch'
    x, y = x.type(torch.cuda.FloatTensor), y.cuda()
    assert isinstance(x, torch.cuda.FloatTensor) and int(y.max()) < 10 and (y >= 0).all()
    kept = y[y < 100]
    assert kept.shape == y.shape and torch.distributions.Categorical(logits=model(x)).logits.shape[1] == 10
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

COMPILED = HEAD + """
class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))


model = nn.Sequential(nn.Linear(8, 16), Block(16), Block(16), nn.Linear(16, 4)).to(device)
WHOLE = torch.compile(model)
optimizer = torch.optim.AdamW(model.parameters())
data = DataLoader(TensorDataset(torch.randn(256, 8), torch.randint(4, (256,))), batch_size=16)
for x, y in data:
    loss = nn.functional.cross_entropy(WHOLE(x.to(device)), y.to(device))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
"""

VALIDATED = HEAD + """
model = nn.Sequential(nn.Conv2d(1, 8, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 4))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
training = DataLoader(TensorDataset(torch.randn(1024, 1, 64, 64), torch.randint(4, (1024,))), batch_size=8)
validation = DataLoader(TensorDataset(torch.randn(512, 1, 64, 64), torch.randint(4, (512,))), batch_size=512)
for epoch in range(2):
    for x, y in training:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in validation)
    print(right)
"""

AVERAGED_IN_A_DICT = HEAD + """
model = Net().cuda()
average = {name: p.detach().clone() for name, p in model.named_parameters()}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    F.cross_entropy(model(x.cuda()), y.cuda()).backward()
    optimizer.step()
    with torch.no_grad():
        for name, p in model.named_parameters():
            average[name].lerp_(p, 0.01)
"""

OLD_WEIGHTS = HEAD + """
model = Net().cuda()
old = {name: p.detach().clone() for name, p in model.named_parameters()}
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=8, shuffle=True):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x.cuda()), y.cuda()) + sum(((p - old[name]) ** 2).sum() for name, p in model.named_parameters())
    loss.backward()
    optimizer.step()
"""
