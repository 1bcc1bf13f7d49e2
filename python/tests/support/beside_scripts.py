"""Scripts that keep more on the GPU than their step trains: teachers, averages, optimizers of several kinds, networks at rest."""

from step_scripts import HEAD

_LOOP = """
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=20):
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# Its products come without gradient, in each step anew, and its features by a hook.
TEACHER = HEAD + """
teacher, model = nn.Sequential(nn.Linear(64, 4000), nn.ReLU(), nn.Linear(4000, 8)).cuda().eval(), net()
seen = {}
teacher[0].register_forward_hook(lambda module, args, out: seen.update(features=out))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for x, y in DataLoader(data, batch_size=20):
    x = x.cuda()
    with torch.no_grad():
        wanted = teacher(x)
    loss = F.kl_div(model(x).log_softmax(1), wanted.softmax(1)) + 0 * seen['features'].mean()
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# Passes of an episode come before the step and are none of it.
EPISODES = HEAD + """
model = net()
optimizer = torch.optim.Adam(model.parameters())
for i in range(12):
    with torch.no_grad():
        values = [model(torch.rand(20, 64).cuda()).amax() for _ in range(30)]
    loss = F.cross_entropy(model(torch.rand(20, 64).cuda()), torch.randint(8, (20,)).cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

MANY_PASSES = HEAD + """
model, teacher = net(), net().requires_grad_(False)
optimizer = torch.optim.Adam(model.parameters())
for x, y in DataLoader(data, batch_size=20):
    with torch.no_grad():
        wanted = torch.stack([teacher(part) for part in [x.cuda()] * 12]).mean(0)
    loss = F.mse_loss(model(x.cuda()), wanted)
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

AVERAGES = HEAD + """
class Lazy(dict):
    def values(self): raise SystemExit("all of a library is imported")
    __len__ = __iter__ = values
lazy = Lazy({i: i for i in range(100)})
model = net()
fast, slow = copy.deepcopy(model), copy.deepcopy(model)
shadow = {name: tensor.clone().detach() for name, tensor in model.state_dict().items()}
optimizer = torch.optim.Adam(model.parameters())
for x, y in DataLoader(data, batch_size=20):
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    with torch.no_grad():
        for p, a, b in zip(model.parameters(), fast.parameters(), slow.parameters()):
            a.mul_(0.9).add_(p, alpha=0.1); b.lerp_(p, 0.001)
        for name, tensor in model.state_dict().items():
            shadow[name].mul_(0.9).add_(tensor, alpha=0.1)
"""

# One of the two networks is averaged.
ONE_AVERAGE = HEAD + """
g, d = nn.Linear(16, 64).cuda(), net()
average = copy.deepcopy(g)
both = [torch.optim.Adam(g.parameters()), torch.optim.Adam(d.parameters())]
for x, y in DataLoader(data, batch_size=20):
    loss = F.cross_entropy(d(x.cuda() + g(torch.rand(len(x), 16).cuda())), y.cuda())
    for optimizer in both: optimizer.zero_grad()
    loss.backward()
    for optimizer in both: optimizer.step()
    with torch.no_grad():
        for p, a in zip(g.parameters(), average.parameters()): a.lerp_(p, 0.001)
"""

# Averages that all of a list's functions write at once, which return nothing.
LISTED = HEAD + """
model, second = net(), net()
average = copy.deepcopy(model)
copies = [p.detach().clone() for p in second.parameters()]
optimizer = torch.optim.Adam([*model.parameters(), *second.parameters()])
for x, y in DataLoader(data, batch_size=20):
    loss = F.cross_entropy(model(x.cuda()), y.cuda()) + F.cross_entropy(second(x.cuda()), y.cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
    with torch.no_grad():
        torch._foreach_lerp_(list(average.parameters()), list(model.parameters()), 0.001)
        torch._foreach_lerp_(copies, list(second.parameters()), 0.001)
"""

# The decoder's weights and the pictures lie on the GPU, and no step reads them.
AT_REST = HEAD + """
class Coder(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = nn.Linear(64, 64), nn.Linear(64, 1 << 16)
coder, model = Coder().cuda().requires_grad_(False), net()
pictures = torch.rand(1 << 20).cuda()
optimizer = torch.optim.Adam(model.parameters())
for x, y in DataLoader(data, batch_size=20):
    with torch.no_grad():
        x = coder.encoder(x.cuda())
    loss = F.cross_entropy(model(x), y.cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# Sizes grow with the square of the batch, which is seen once a line through them has failed.
PAIRS = HEAD + """
model, pictures = net(), torch.rand(1 << 20).cuda()
optimizer = torch.optim.Adam(model.parameters())
for x, y in DataLoader(data, batch_size=20):
    z = model(x.cuda())
    loss = F.cross_entropy(z @ z.T, torch.arange(len(x)).cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

KINDS = HEAD + """
model = net()
both = [torch.optim.SGD(model[0].parameters(), lr=0.1, momentum=0.9), torch.optim.Adam(model[2].parameters(), weight_decay=0.1)]
for x, y in DataLoader(data, batch_size=20):
    loss = F.cross_entropy(model(x.cuda()), y.cuda())
    for optimizer in both: optimizer.zero_grad()
    loss.backward()
    for optimizer in both: optimizer.step()
"""

# Two products for each matrix, one in half precision.
ORTHOGONAL = HEAD + """
class Orthogonal(torch.optim.Optimizer):
    def __init__(self, parameters): super().__init__(parameters, {'lr': 0.1})
    @torch.no_grad()
    def step(self):
        for p in self.param_groups[0]['params']:
            state = self.state[p]
            if not state: state['momentum'] = torch.zeros_like(p)
            update = state['momentum'].lerp_(p.grad, 0.1)
            if p.ndim == 2:
                square = update.bfloat16() @ update.bfloat16().T
                update = square.float() @ update
            p.add_(update, alpha=-0.1)
model = net()
optimizer = Orthogonal(model.parameters())
""" + _LOOP

MUON = HEAD + """
model = net()
optimizer = torch.optim.Muon([p for p in model.parameters() if p.ndim == 2], lr=0.02)
""" + _LOOP

BY_TRANSFORM = HEAD + """
model = net()
weights = {name: p.detach() for name, p in model.named_parameters()}
def loss_of(weights, x, y): return F.cross_entropy(torch.func.functional_call(model, weights, (x,)), y)
step = torch.func.grad_and_value(loss_of)
for x, y in DataLoader(data, batch_size=20):
    gradients, loss = step(weights, x.cuda(), y.cuda())
    weights = {name: p - 0.1 * gradients[name] for name, p in weights.items()}
"""

# What was seen is kept for later steps to draw from, which no step reads yet.
REPLAY = HEAD + """
model, kept = net(), []
optimizer = torch.optim.Adam(model.parameters())
for x, y in DataLoader(data, batch_size=20):
    kept.append(torch.rand(1 << 18).cuda())
    loss = F.cross_entropy(model(x.cuda() / 2), y.cuda())
    optimizer.zero_grad(); loss.backward(); optimizer.step()
"""

# Gradients of a table's rows that a batch names, and an optimizer for them beside that of the rest.
SPARSE = HEAD + """
words, head = nn.Embedding(5000, 64, sparse=True).cuda(), nn.Linear(64, 8).cuda()
both = [torch.optim.SparseAdam(words.parameters()), torch.optim.Adam(head.parameters())]
for x, y in DataLoader(TensorDataset(torch.randint(5000, (400,)), torch.randint(8, (400,))), batch_size=20):
    loss = F.cross_entropy(head(words(x.cuda())), y.cuda())
    for optimizer in both: optimizer.zero_grad()
    loss.backward()
    for optimizer in both: optimizer.step()
"""

# The last piece is smaller than the others.
UNEQUAL = HEAD + """
model = net()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=100):
        optimizer.zero_grad()
        for part, labels in zip(x.cuda().split(32), y.cuda().split(32)):
            F.cross_entropy(model(part), labels).backward()
        optimizer.step()
"""

# Weights that get another tensor in each step.
RENEWED = HEAD + """
model = net()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(3):
    for x, y in DataLoader(data, batch_size=20):
        loss = F.cross_entropy(model(x.cuda()), y.cuda())
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        for p in model.parameters(): p.data = p.data * 0.9
"""

# Results of 1.3 MB, of which a name holds the last; from the third part on they are made up.
PARTS = HEAD + """
model = nn.Sequential(nn.Linear(64, 16384), nn.Tanh()).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batches = [(torch.rand(20, 64), torch.rand(20, 16384)) for _ in range(6)]
for epoch in range(8):
    for x, y in batches:
        x, y = x.cuda(), y.cuda()
        results = model(x)
        loss = F.mse_loss(results, y)
        (loss / 6).backward()
    optimizer.step(); optimizer.zero_grad()
"""
