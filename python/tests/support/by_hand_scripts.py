"""Scripts that do by hand what others have a library for: gradients, weights in two types, batches made beforehand, experts."""

from step_scripts import HEAD

# Weights in bfloat16, which are computed with, and in float32, which are updated.
MASTER_WEIGHTS = HEAD + """
model = net().bfloat16()
master = [p.detach().clone().float().requires_grad_() for p in model.parameters()]
optimizer = torch.optim.AdamW(master)
for x, y in DataLoader(data, batch_size=20):
    loss = F.cross_entropy(model(x.cuda().bfloat16()), y.cuda())
    model.zero_grad()
    loss.backward()
    for p, kept in zip(model.parameters(), master):
        kept.grad = p.grad.float()
    optimizer.step()
    optimizer.zero_grad()
    with torch.no_grad():
        for p, kept in zip(model.parameters(), master):
            p.copy_(kept)
"""

# Gradients of each sample, clipped, without a backward().
OF_EACH_SAMPLE = HEAD + """
from torch.func import functional_call, grad, vmap
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
def loss_of(weights, x, y):
    return F.cross_entropy(functional_call(model, weights, (x[None],)), y[None])
each = vmap(grad(loss_of), in_dims=(None, 0, 0))
for x, y in DataLoader(data, batch_size=20):
    gradients = each({name: p.detach() for name, p in model.named_parameters()}, x.cuda(), y.cuda())
    for name, p in model.named_parameters():
        p.grad = gradients[name].clamp(-1, 1).mean(0)
    optimizer.step()
    optimizer.zero_grad()
"""

MADE_BEFOREHAND = HEAD + """
torch.set_default_tensor_type("torch.cuda.FloatTensor")
model = nn.Linear(4096, 8)
batches = [torch.Tensor([[0.5] * 4096] * 64) for _ in range(10)]
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x in batches:
    loss = model(x).square().mean() * torch.tensor([2.0]) + torch.as_tensor(1.0)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

ON_A_DEFAULT_DEVICE = HEAD + """
torch.set_default_device("cuda")
assert torch.get_default_device().type == "cuda"
model = nn.Linear(64, 8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch_size = 20
for i in range(3):
    loss = F.cross_entropy(model(torch.rand(batch_size, 64)), torch.as_tensor([i] * batch_size), torch.tensor([0.5] * 8))
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# Two optimizers take turns, and one of them steps twice as often.
TURNS = HEAD + """
first, second = net(), net()
both = [torch.optim.Adam(model.parameters()) for model in (first, second)]
batch_size = 20
def step(model, optimizer):
    loss = F.cross_entropy(model(torch.rand(batch_size, 64).cuda()), torch.zeros(batch_size, dtype=torch.long).cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
for i in range(10):
    if i % 3 == 0:
        step(first, both[0])
    step(second, both[1])
"""

# Four experts, each sample goes to two of them.
_EXPERTS = HEAD + """
class Routed(nn.Module):
    def __init__(self):
        super().__init__()
        self.gate, self.experts = nn.Linear(64, 4), nn.ModuleList(nn.Linear(64, 64) for _ in range(4))
    def forward(self, x):
        weights, chosen = self.gate(x).softmax(-1).topk(2, -1)
        out = torch.zeros_like(x)
        %s
        return out
model = Routed().cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=20):
    loss = model(x.cuda().repeat(8, 1)).square().mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""
ONE_HOT_EXPERTS = _EXPERTS % """mask = F.one_hot(chosen, 4).permute(2, 1, 0)
        for number, expert in enumerate(self.experts):
            slot, token = torch.where(mask[number])
            out = out.index_add(0, token, expert(x[token]) * weights[token, slot, None])"""
COMPARED_EXPERTS = _EXPERTS % """for number, expert in enumerate(self.experts):
            mask = (chosen == number).any(-1)
            if not mask.any():
                continue
            out[mask] = out[mask] + expert(x[mask])"""
COUNTED_EXPERTS = _EXPERTS % """counts = torch.bincount(chosen.flatten(), minlength=4).tolist()
        for number, expert in enumerate(self.experts):
            if counts[number] == 0:
                continue
            token, slot = torch.where(chosen == number)
            out = out.index_add(0, token, expert(x[token]) * weights[token, slot, None])"""
SORTED_EXPERTS = _EXPERTS % """order = chosen.flatten().argsort()
        parts = x[order // 2].split(F.one_hot(chosen.flatten(), 4).sum(0).tolist())
        made = torch.cat([expert(part) for expert, part in zip(self.experts, parts)])
        out = out.index_add(0, order // 2, made * weights.flatten()[order, None])"""

HIDDEN_WORDS = HEAD + """
words = nn.Embedding(50, 64).cuda()
head = nn.Linear(64, 50).cuda()
optimizer = torch.optim.SGD([*words.parameters(), *head.parameters()], lr=0.1)
for x, y in DataLoader(TensorDataset(torch.randint(50, (400, 128)), torch.zeros(400)), batch_size=20):
    x = x.cuda()
    hidden = torch.rand(x.shape, device="cuda") < 0.15
    loss = F.cross_entropy(head(words(x.masked_fill(hidden, 0))[hidden]), x[hidden])
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

DATA_THERE = HEAD + """
model = net()
there = TensorDataset(*(tensor.cuda() for tensor in data.tensors))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(there, batch_size=20, shuffle=True):
    loss = F.cross_entropy(model(x), y)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# Critics of one kind have an optimizer each, and take a batch from a memory.
TWINS = HEAD + """
class Memory:
    def __init__(self): self.states, self.returns = torch.rand(1000, 64).cuda(), torch.rand(1000, 1).cuda()
    def sample(self, count):
        chosen = torch.randint(1000, (count,)).cuda()
        return self.states[chosen], self.returns[chosen]
memory = Memory()
critics = [nn.Linear(64, 1).cuda() for _ in range(2)]
both = [torch.optim.Adam(critic.parameters()) for critic in critics]
for i in range(10):
    states, returns = memory.sample(48)
    for critic, optimizer in zip(critics, both):
        loss = F.mse_loss(critic(states), returns)
        optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

MOVED_TO_HOST = HEAD + """
model = nn.Sequential(nn.Linear(64, 512), nn.Sigmoid(), nn.Linear(512, 512), nn.Sigmoid(), nn.Linear(512, 8)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(data, batch_size=20):
    with torch.autograd.graph.save_on_cpu(pin_memory=True):
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# Each network is switched off in the other's turn, and drops its gradients at the end of its own.
TOGGLED = HEAD + """
maker, judge = nn.Linear(16, 64).cuda(), net()
both = [torch.optim.Adam(maker.parameters()), torch.optim.Adam(judge.parameters())]
def turn(own, other, optimizer, loss_of):
    own.requires_grad_(True); other.requires_grad_(False)
    loss_of().backward(); optimizer.step(); optimizer.zero_grad()
for x, y in DataLoader(data, batch_size=20):
    noise = torch.rand(len(x), 16).cuda()
    turn(maker, judge, both[0], lambda: -judge(maker(noise)).mean())
    turn(judge, maker, both[1], lambda: judge(maker(noise)).mean() - judge(x.cuda()).mean())
"""
