"""Scripts whose steps are put together in ways of their own: samplers, several loaders, gradients by hand."""

HEAD = """
import copy, itertools, random
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
def net(): return nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 8)).cuda()
data = TensorDataset(torch.rand(400, 64), torch.randint(8, (400,)))
"""

# Sentences of like lengths in a batch, put together by a sampler of the script's own.
BUCKETS = HEAD + """
rows = [(torch.randint(1, 50, (5 + i % 40,)), i % 3) for i in range(400)]
class Buckets:
    def __init__(self, size): self.size = size
    def __iter__(self):
        order = sorted(range(len(rows)), key=lambda i: len(rows[i][0]))
        parts = [order[i:i + self.size] for i in range(0, len(order), self.size)]
        random.shuffle(parts)
        return iter(parts)
    def __len__(self): return len(rows) // self.size
def collate(batch):
    return nn.utils.rnn.pad_sequence([x for x, _ in batch], batch_first=True), torch.tensor([y for _, y in batch])
words, head = nn.Embedding(50, 16).cuda(), nn.Linear(16, 3).cuda()
optimizer = torch.optim.Adam([*words.parameters(), *head.parameters()])
for epoch in range(2):
    for x, y in DataLoader(rows, batch_sampler=Buckets(20), collate_fn=collate):
        loss = F.cross_entropy(head(words(x.cuda()).mean(1)), y.cuda())
        optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# Four samples of each of five classes.
BALANCED = HEAD + """
class Balanced:
    def __iter__(self):
        for _ in range(20):
            yield [i for c in random.sample(range(8), 5) for i in random.sample(of_class[c], 4)]
    def __len__(self): return 20
labels = data.tensors[1].tolist()
of_class = {c: [i for i, y in enumerate(labels) if y == c] * 4 for c in range(8)}
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_sampler=Balanced()):
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

TWO_LOADERS = HEAD + """
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
many = TensorDataset(torch.rand(800, 64))
for epoch in range(2):
    for (x, y), (u,) in zip(DataLoader(data, batch_size=10), itertools.cycle(DataLoader(many, batch_size=30))):
        loss = F.cross_entropy(model(x.cuda()), y.cuda()) + F.softmax(model(u.cuda()), 1).square().mean()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# A second network that the step calls is no moving average.
TARGET = HEAD + """
model = net()
target = copy.deepcopy(model).eval().requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters())
for i, (x, y) in enumerate(DataLoader(data, batch_size=20)):
    x = x.cuda()
    with torch.no_grad():
        wanted = target(x).amax(1)
    loss = F.smooth_l1_loss(model(x).amax(1), wanted)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    if i % 10 == 9:
        target.load_state_dict(model.state_dict())
"""

BY_GRAD = HEAD + """
model = net()
for x, y in DataLoader(data, batch_size=20):
    gradients = torch.autograd.grad(F.cross_entropy(model(x.cuda()), y.cuda()), list(model.parameters()))
    with torch.no_grad():
        for p, g in zip(model.parameters(), gradients):
            p -= 0.1 * g
"""

# The large tables stay on the host, with an optimizer of their own.
TABLES_ON_HOST = HEAD + """
tables, model = nn.EmbeddingBag(500, 64, mode='sum'), net()
optimizers = [torch.optim.Adagrad(tables.parameters()), torch.optim.Adam(model.parameters())]
rows = TensorDataset(torch.randint(500, (400, 5)), torch.randint(8, (400,)))
for x, y in DataLoader(rows, batch_size=20):
    loss = F.cross_entropy(model(tables(x).cuda()), y.cuda())
    for optimizer in optimizers: optimizer.zero_grad()
    loss.backward()
    for optimizer in optimizers: optimizer.step()
"""

# Batches differ in size from step to step, and no DataLoader makes them.
LENGTHS = HEAD + """
words, head = nn.Embedding(50, 16).cuda(), nn.Linear(16, 3).cuda()
optimizer = torch.optim.Adam([*words.parameters(), *head.parameters()])
for length in itertools.cycle((7, 30, 12)):
    loss = F.cross_entropy(head(words(torch.randint(50, (18, length)).cuda()).mean(1)), torch.randint(3, (18,)).cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

OTHER_GPU = HEAD + """
torch.cuda.set_device(1)
model = net()
"""

TWO_TYPES = HEAD + """
model = net().bfloat16()
adapter = nn.Linear(64, 8).cuda()
optimizer = torch.optim.SGD(adapter.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=20):
    x = x.cuda().bfloat16()
    loss = F.cross_entropy(model(x) + adapter(x), y.cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# Looks for the batch that fits until memory runs out.
LOOKS_FOR_BATCH = HEAD + """
model = net()
def fits(n):
    try:
        with torch.no_grad():
            model(torch.rand(n, 64, device='cuda'))
        return True
    except torch.cuda.OutOfMemoryError:
        return False
n = 1
while fits(2 * n):
    n *= 2
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=25):
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# Truncated backpropagation through time: each piece of the sequences has all samples of the batch.
IN_PIECES = HEAD + """
rows = TensorDataset(torch.rand(400, 12, 16), torch.randint(8, (400,)))
model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(rows, batch_size=20):
    optimizer.zero_grad()
    for piece in x.cuda().chunk(3, dim=1):
        F.cross_entropy(model(piece).mean(1), y.cuda()).backward()
    optimizer.step()
"""

# Gradients of gradients, of parameters that are handed over as they come.
SECOND_ORDER = HEAD + """
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=20):
    gradients = torch.autograd.grad(F.cross_entropy(model(x.cuda()), y.cuda()), model.parameters(), create_graph=True)
    loss = sum((g * g).sum() for g in gradients)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# All samples in every step, as a graph's nodes, and an evaluation behind each.
EVALUATES = HEAD + """
model = net()
optimizer = torch.optim.Adam(model.parameters())
x, y = data.tensors[0].cuda(), data.tensors[1].cuda()
for epoch in range(20):
    model.train()
    optimizer.zero_grad()
    F.cross_entropy(model(x), y).backward()
    optimizer.step()
    model.eval()
    with torch.no_grad():
        print(f"{F.cross_entropy(model(x), y).item():.3f}")
"""

# The optimizer calls for the loss itself, several times in a step.
BY_CLOSURE = HEAD + """
model = net()
optimizer = torch.optim.LBFGS(model.parameters(), history_size=7)
x, y = data.tensors[0].cuda(), data.tensors[1].cuda()
for epoch in range(20):
    def closure():
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        return loss
    optimizer.step(closure)
"""

# As many sentences in a batch as 240 words allow.
BUDGET = HEAD + """
rows = [(torch.randint(1, 50, (5 + i % 40,)), i % 3) for i in range(400)]
class Budget:
    def __init__(self, words):
        self.batches, held = [[]], 0
        for i in sorted(range(400), key=lambda i: len(rows[i][0])):
            if len(rows[i][0]) * (len(self.batches[-1]) + 1) > words:
                self.batches.append([])
            self.batches[-1].append(i)
        random.Random(1).shuffle(self.batches)
    def __iter__(self): return iter(self.batches)
    def __len__(self): return len(self.batches)
def collate(batch):
    return nn.utils.rnn.pad_sequence([x for x, _ in batch], batch_first=True), torch.tensor([y for _, y in batch])
model = nn.Sequential(nn.Embedding(50, 64), nn.Linear(64, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in DataLoader(rows, batch_sampler=Budget(240), collate_fn=collate):
        loss = F.cross_entropy(model(x.cuda()).mean(1), y.cuda())
        optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# The loop mixes a batch in a way that chance decides, as samples are turned by chance.
MIXED = HEAD + """
class Turned(torch.utils.data.Dataset):
    def __len__(self): return 400
    def __getitem__(self, i): return torch.rand(64) * random.choice([1, -1]), i % 8
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(Turned(), batch_size=20, num_workers=2):
    x, y = x.cuda(), y.cuda()
    for _ in range(random.randrange(1, 30)): x = x * 1.5
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# What a worker draws for samples of other lengths goes on from batch to batch.
DRAWN = HEAD + """
class Cut(torch.utils.data.Dataset):
    def __len__(self): return 400
    def __getitem__(self, i): return torch.randint(1, 50, (random.randrange(10, 30),)), i % 8
def collate(batch):
    lengths.append(max(len(x) for x, _ in batch))
    return nn.utils.rnn.pad_sequence([x for x, _ in batch], batch_first=True), torch.tensor([y for _, y in batch])
lengths = []
model = nn.Sequential(nn.Embedding(50, 64), nn.Linear(64, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
loader = iter(DataLoader(Cut(), batch_size=2, collate_fn=collate))
for _ in range(8): next(loader)
assert len(set(lengths)) > 1
for x, y in loader:
    loss = F.cross_entropy(model(x.cuda()).mean(1), y.cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# The second network has two turns, and is switched off in that of the first.
TURNS_OFF = HEAD + """
first, second = nn.Linear(16, 64).cuda(), net()
of_first, of_second = torch.optim.Adam(first.parameters()), torch.optim.Adam(second.parameters())
batches = iter(DataLoader(data, batch_size=20))
while True:
    for _ in range(2):
        loss = F.relu(1 + second(next(batches)[0].cuda())).mean() + second(first(torch.rand(20, 16).cuda()).detach()).mean()
        of_second.zero_grad(); loss.backward(); of_second.step()
    second.requires_grad_(False)
    loss = second(first(torch.rand(20, 16).cuda())).mean()
    of_first.zero_grad(); loss.backward(); of_first.step()
    second.requires_grad_(True)
"""

# Every second step gives the network what it has made of the batch before.
CONDITIONED = HEAD + """
model = nn.Sequential(nn.Linear(128, 32), nn.ReLU(), nn.Linear(32, 64)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for i, (x, y) in enumerate(DataLoader(data, batch_size=20)):
    x, before = x.cuda(), torch.zeros(len(x), 64).cuda()
    if i % 2:
        with torch.no_grad(): before = model(torch.cat([x, before], 1))
    loss = F.mse_loss(model(torch.cat([x, before], 1)), x)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""
