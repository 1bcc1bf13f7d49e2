"""Scripts that ask the GPU, the libraries around PyTorch and other processes whatever people ask them."""

from odd_scripts import NET
from starting_scripts import LOOP

EVERYTHING = NET + """
os.environ['PYTORCH_CUDA_ALLOC_CONF'] = 'expandable_segments:True'
os.environ.setdefault('CUBLAS_WORKSPACE_CONFIG', ':4096:8')
device = torch.device('cuda', torch.cuda.current_device())
properties = torch.cuda.get_device_properties(device)
print(properties, properties.multi_processor_count, properties.max_threads_per_block, properties.total_memory / 2**30)
assert properties.total_memory == torch.cuda.mem_get_info()[1] and torch.cuda.get_device_capability() >= (7, 0)
assert tuple(int(n) for n in torch.version.cuda.split('.')) >= (11, 0) and torch.backends.cudnn.version() >= 8000
torch.backends.cudnn.benchmark, torch.backends.cudnn.deterministic = True, False
torch.backends.cudnn.allow_tf32 = torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cuda.matmul.allow_fp16_reduced_precision_reduction = False
torch.backends.cuda.enable_flash_sdp(True)
torch.cuda.set_per_process_memory_fraction(0.5, 0)
torch.cuda.memory._record_memory_history(max_entries=1000)
print(torch.cuda.nccl.version(), torch.cuda.get_arch_list(), torch.cuda.get_allocator_backend(), torch.cuda.is_tf32_supported())
torch.cuda.cudart().cudaProfilerStart()
torch.cuda.profiler.start()
with torch.cuda.device(0), torch.cuda.nvtx.range('all'):
    side, start, end = torch.cuda.Stream(priority=-1), torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
pinned = torch.empty(64, 64, pin_memory=True)
assert pinned.is_pinned() and torch.rand(3).pin_memory().device.type == 'cpu'
stats = []
for i, (x, y) in enumerate(torch.utils.data.DataLoader(data, batch_size=20, pin_memory=True)):
    start.record()
    with torch.cuda.stream(side):
        x, y = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
    torch.cuda.current_stream().wait_stream(side)
    x.record_stream(torch.cuda.current_stream())
    torch.cuda.reset_peak_memory_stats()
    step(x, y)
    end.record(); torch.cuda.synchronize()
    known = torch.cuda.memory_stats()
    stats.append({k: known[k] for k in ('allocated_bytes.all.peak', 'reserved_bytes.all.current', 'num_ooms', 'num_alloc_retries')})
    share = torch.cuda.max_memory_allocated() / properties.total_memory
    print(f'{start.elapsed_time(end):.2f} ms {share:.1%}', torch.cuda.memory_summary())
    if torch.cuda.memory_reserved() > 0.9 * properties.total_memory:
        torch.cuda.empty_cache()
torch.cuda.profiler.stop()
"""

PROFILED = NET + """
from torch.profiler import ProfilerActivity, profile, record_function, schedule, tensorboard_trace_handler
with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA], schedule=schedule(wait=1, warmup=1, active=2),
             on_trace_ready=tensorboard_trace_handler('./traces'), record_shapes=True, profile_memory=True) as prof:
    for x, y in torch.utils.data.DataLoader(data, batch_size=20):
        with record_function('step'):
            step(x, y)
        prof.step()
prof.export_chrome_trace('trace.json')
print(prof.key_averages().table(sort_by='cuda_time_total', row_limit=10))
"""

FINDS_BATCH = NET + """
batch_size = 256
while True:
    try:
        for x, y in torch.utils.data.DataLoader(data, batch_size=batch_size):
            step(x, y)
        break
    except torch.cuda.OutOfMemoryError:
        batch_size //= 2
        torch.cuda.empty_cache()
"""

WANDB = NET + """
import argparse
import wandb
parser = argparse.ArgumentParser()
parser.add_argument('--batch-size', type=int, default=20)
args = parser.parse_args()
run = wandb.init(project='x', entity='y', config=args)
wandb.config.update({'lr': 0.1})
config = wandb.config
wandb.watch(net, log='all')
for i, (x, y) in enumerate(torch.utils.data.DataLoader(data, batch_size=config.batch_size)):
    loss = step(x, y)
    wandb.log({'loss': loss.item(), 'lr': config['lr']}, step=i)
torch.save(net.state_dict(), os.path.join(wandb.run.dir, 'model.pt'))
wandb.run.summary['best'] = 1
artifact = wandb.Artifact('model', type='model')
artifact.add_file('model.pt')
run.log_artifact(artifact)
wandb.finish()
"""

SWEEP = NET + """
import wandb
def train():
    with wandb.init() as run:
        for x, y in torch.utils.data.DataLoader(data, batch_size=wandb.config.batch_size):
            wandb.log({'loss': step(x, y).item()})
sweep = wandb.sweep({'method': 'random', 'parameters': {'batch_size': {'values': [25, 50]}, 'lr': {'min': 0.1, 'max': 0.2}}}, project='x')
wandb.agent(sweep, function=train, count=3)
"""

LOGGERS = NET + """
import mlflow
import neptune
from comet_ml import Experiment
from tensorboardX import SummaryWriter as Other
from torch.utils.tensorboard import SummaryWriter
experiment, writer, other = Experiment(api_key='x', project_name='y'), SummaryWriter('runs/one'), Other()
run = neptune.init_run(project='a/b', api_token='x')
run['parameters'] = {'lr': 0.1}
mlflow.set_tracking_uri('http://tracker.example:5000')
mlflow.set_experiment('x')
writer.add_graph(net, torch.rand(1, 64).cuda())
with mlflow.start_run(run_name='x') as active, experiment.train():
    mlflow.log_params({'lr': 0.1})
    for i, (x, y) in enumerate(torch.utils.data.DataLoader(data, batch_size=20)):
        loss = step(x, y).item()
        mlflow.log_metric('loss', loss, step=i)
        experiment.log_metric('loss', loss, step=i)
        run['loss'].append(loss)
        writer.add_scalar('loss', loss, i); other.add_scalars('loss', {'a': loss}, i)
    print(active.info.run_id)
writer.close()
"""

OPTIONAL = NET + """
try:
    import wandb
    import deepspeed
except ImportError:
    wandb = deepspeed = None
assert wandb is None and deepspeed is None
""" + LOOP

DEEPSPEED = NET + """
import argparse
import deepspeed
parser = deepspeed.add_config_arguments(argparse.ArgumentParser())
args = parser.parse_args()
deepspeed.init_distributed()
engine, optimizer, loader, _ = deepspeed.initialize(args=args, model=net, model_parameters=net.parameters(), config='ds.json')
"""

FAIRSCALE = NET + """
from fairscale.nn.data_parallel import FullyShardedDataParallel as FSDP
net = FSDP(net)
"""

HOROVOD = NET + """
import horovod.torch as hvd
hvd.init()
torch.cuda.set_device(hvd.local_rank())
sampler = torch.utils.data.distributed.DistributedSampler(data, num_replicas=hvd.size(), rank=hvd.rank())
optimizer = torch.optim.SGD(net.parameters(), lr=0.1 * hvd.size(), momentum=0.9)
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=net.named_parameters(), compression=hvd.Compression.fp16, op=hvd.Average)
hvd.broadcast_parameters(net.state_dict(), root_rank=0)
hvd.broadcast_optimizer_state(optimizer, root_rank=0)
for x, y in torch.utils.data.DataLoader(data, batch_size=20, sampler=sampler):
    loss = step(x, y)
    if hvd.rank() == 0:
        print(hvd.allreduce(loss.detach(), name='loss').item())
"""

RENDEZVOUS = """
import datetime, os
import torch
import torch.distributed as dist
from torch.distributed.elastic.multiprocessing.errors import record
@record
def main():
    options = dist.ProcessGroupNCCL.Options()
    options.is_high_priority_stream = True
    store = dist.TCPStore('127.0.0.1', 29501, int(os.environ['WORLD_SIZE']), os.environ['RANK'] == '0')
    dist.init_process_group('nccl', store=store, rank=int(os.environ['RANK']), world_size=int(os.environ['WORLD_SIZE']),
                            timeout=datetime.timedelta(minutes=30), pg_options=options)
    net = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(64, 8).cuda(), device_ids=[0])
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(400, 64)), batch_size=20):
        loss = net(x.cuda()).sum()
        optimizer.zero_grad(); loss.backward(); optimizer.step()
        dist.all_reduce(loss.detach(), op=dist.ReduceOp.AVG)
        dist.barrier()
    dist.destroy_process_group()
if __name__ == '__main__':
    main()
"""

ELASTIC = NET + """
from torch.distributed.launcher.api import LaunchConfig, elastic_launch
def main(batch):
    for x, y in torch.utils.data.DataLoader(data, batch_size=batch):
        step(x, y)
elastic_launch(LaunchConfig(min_nodes=1, max_nodes=1, nproc_per_node=2, rdzv_backend='c10d', rdzv_endpoint='localhost:0'), main)(20)
"""

LAUNCHES = """
from torch.distributed.run import main
main(['--nproc_per_node', '2', 'inner.py', '--lr', '0.1'])
"""

SHARDED = """
import os
import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_state_dict, set_state_dict
from torch.distributed.fsdp import CPUOffload, FullStateDictConfig, FullyShardedDataParallel as FSDP, StateDictType
dist.init_process_group('nccl')
net = FSDP(nn.Linear(64, 8), device_id=int(os.environ['LOCAL_RANK']), cpu_offload=CPUOffload(offload_params=True), use_orig_params=True)
optimizer = torch.optim.AdamW(net.parameters())
FSDP.set_state_dict_type(net, StateDictType.FULL_STATE_DICT, FullStateDictConfig(offload_to_cpu=True, rank0_only=True))
with FSDP.state_dict_type(net, StateDictType.FULL_STATE_DICT), FSDP.summon_full_params(net):
    torch.save({'net': net.state_dict(), 'optimizer': FSDP.optim_state_dict(net, optimizer)}, 'all.pt')
kept = torch.load('all.pt')
net.load_state_dict(kept['net'])
optimizer.load_state_dict(FSDP.optim_state_dict_to_load(net, optimizer, kept['optimizer']))
weights, state = get_state_dict(net, optimizer)
dcp.save({'net': weights, 'optimizer': state}, checkpoint_id='sharded')
set_state_dict(net, optimizer, model_state_dict=get_model_state_dict(net), optim_state_dict=state)
for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(400, 64)), batch_size=20):
    optimizer.zero_grad(); net(x.cuda()).sum().backward(); optimizer.step()
"""

REDUNDANT = """
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.algorithms.join import Join
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel as DDP
dist.init_process_group('nccl')
net = DDP(nn.Linear(64, 8).cuda(), device_ids=[0], static_graph=True, bucket_cap_mb=50)
optimizer = ZeroRedundancyOptimizer(net.parameters(), optimizer_class=torch.optim.Adam, lr=1e-3)
with Join([net, optimizer]):
    for (x,) in torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.rand(400, 64)), batch_size=20):
        optimizer.zero_grad(); net(x.cuda()).sum().backward(); optimizer.step()
optimizer.consolidate_state_dict(to=0)
"""
