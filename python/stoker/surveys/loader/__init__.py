"""The survey of PyTorch's DataLoader with Pillow and torchvision: scripts/measure-loader."""
