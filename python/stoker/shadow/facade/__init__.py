"""What the script finds in place of torch.cuda, of optimizers, loaders, modules, process groups, libraries and programs.

Each file replaces one part of what a script calls: `install(world)` puts it in place within the script's child process.
"""
