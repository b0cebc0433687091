"""Your own training loop with components of oltr: loss, classifier, sampler, score and metrics.

Everything else is plain PyTorch: the data (scikit-learn's digits; eight known and long-tailed, two not in
the training set), the network, the optimiser, the loop. It takes a few seconds on a CPU.

Run: python examples/03_own_loop.py
"""

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

from oltr.losses import BalancedSoftmaxLoss
from oltr.metrics import OPEN, auroc, f_measure, group_means, per_class_accuracy, shot_groups
from oltr.nn import CosineClassifier
from oltr.openset import MaxLogit, choose_threshold
from oltr.samplers import ClassAwareSampler

KNOWN, COUNTS, EPOCHS = 8, [120, 80, 50, 30, 20, 12, 8, 5], 30
torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

# Data: a long-tailed training set, 10 validation images per class, the rest for test; 8 and 9 are unknown.
digits = load_digits()
images = torch.tensor(digits.images, dtype=torch.float32).unsqueeze(1) / 16
rows = {split: [] for split in ("train", "val", "test")}
for digit, count in enumerate(COUNTS):
    own = np.random.default_rng(digit).permutation(np.flatnonzero(digits.target == digit))
    for split, part in zip(rows, np.split(own, [count, count + 10]), strict=True):
        rows[split] += part.tolist()
rows["open"] = np.flatnonzero(digits.target >= KNOWN).tolist()
labels = torch.tensor(np.where(digits.target < KNOWN, digits.target, OPEN))

# Your own network with the cosine classifier of oltr.
body = nn.Sequential(
    nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 16, 64),
).to(device)  # fmt: skip
classifier = CosineClassifier(64, KNOWN, scale=16.0, form="released").to(device)
criterion = BalancedSoftmaxLoss(COUNTS).to(device)
optimizer = torch.optim.SGD([*body.parameters(), *classifier.parameters()], lr=0.05, momentum=0.9)

# Shuffled batches with the balanced softmax; the last epochs use class-aware batches, as an illustration.
train = TensorDataset(images[rows["train"]], labels[rows["train"]])
balanced = ClassAwareSampler(train.tensors[1], images_per_class=2, seed=0)
for epoch in range(EPOCHS):
    late = epoch >= EPOCHS - 5
    balanced.set_epoch(epoch)
    for batch, target in DataLoader(train, 32, shuffle=not late, sampler=balanced if late else None):
        logits = classifier(body(batch.to(device)))
        loss = nn.functional.cross_entropy if late else criterion
        optimizer.zero_grad()
        loss(logits, target.to(device)).backward()
        optimizer.step()


@torch.no_grad()
def apply(split):
    """Features (N×64) and logits (N×8) of a split, on the CPU."""
    features = body(images[rows[split]].to(device))
    return features.cpu(), classifier(features).cpu()


# Closed set: accuracy by shot group. Open set: a score, a threshold from known validation images, F.
predictions, truth = apply("test")[1].argmax(dim=1), labels[rows["test"]]
accuracy = per_class_accuracy(predictions, truth, KNOWN)
print({name: round(100 * value, 1) for name, value in group_means(accuracy, shot_groups(COUNTS)).items()})

score = MaxLogit().fit(*apply("train"), train.tensors[1])  # some scores are fitted to training images
threshold = choose_threshold(score, score.value(*apply("val")), unknown_rate=0.05)
unknown = {split: score(*apply(split)) for split in ("test", "open")}  # higher is more unknown
rejected = score.is_unknown(score.value(*apply("test")), threshold)
caught = score.is_unknown(score.value(*apply("open")), threshold)
answers = torch.cat([predictions.masked_fill(rejected, OPEN), torch.where(caught, OPEN, 0)])
open_f = f_measure(answers, torch.cat([truth, labels[rows["open"]]]))
print(f"AUROC {auroc(unknown['test'], unknown['open']):.3f}, open F {open_f:.3f}")
print(f"rejected: {caught.float().mean():.0%} of unknown digits, {rejected.float().mean():.0%} of known ones")
