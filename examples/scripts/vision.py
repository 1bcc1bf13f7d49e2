"""A training script of a small image classifier, as people write them: nothing in it knows of Stoker.

    stoker plan examples/scripts/vision.py --gpu t4 -- --amp
    stoker validate examples/scripts/vision.py -- --batch-size 32
"""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


def block(inputs: int, outputs: int) -> nn.Sequential:
    return nn.Sequential(nn.Conv2d(inputs, outputs, 3, padding=1, bias=False), nn.BatchNorm2d(outputs), nn.ReLU(), nn.MaxPool2d(2))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--epochs", type=int, default=5)
    parser.add_argument("--amp", action="store_true")
    args = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    data = TensorDataset(torch.randn(4096, 3, 64, 64), torch.randint(10, (4096,)))
    loader = DataLoader(data, args.batch_size, shuffle=True, num_workers=4, pin_memory=True, drop_last=True)
    model = nn.Sequential(block(3, 32), block(32, 64), block(64, 128), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 10)).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    scaler = torch.amp.GradScaler(device.type, enabled=args.amp)
    for epoch in range(args.epochs):
        correct = 0
        for images, labels in loader:
            images, labels = images.to(device, non_blocking=True), labels.to(device, non_blocking=True)
            optimizer.zero_grad()
            with torch.autocast(device.type, dtype=torch.float16, enabled=args.amp):
                scores = model(images)
                loss = nn.functional.cross_entropy(scores, labels)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            correct += (scores.argmax(1) == labels).sum().item()
        print(f"epoch {epoch}: loss {loss.item():.3f}, accuracy {correct / len(data):.1%}")
        torch.save(model.state_dict(), "vision.pt")


if __name__ == "__main__":
    main()
