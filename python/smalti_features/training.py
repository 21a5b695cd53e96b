# SPDX-License-Identifier: Apache-2.0
"""What PixArt's training takes, as its own loader of feature files gives it."""

import random

import numpy as np
import torch

from .features import Features
from .order import _Random


def to_tensor(values):
    """A copy: what is read is a view of a file."""
    if values.dtype == np.uint16:
        return torch.from_numpy(values.view(np.int16).copy()).view(torch.bfloat16)
    return torch.from_numpy(values.copy())


class PixArtFeatures(torch.utils.data.Dataset):
    """Items that are complete, as (latents, text, mask, info):

    latents  [channels, h, w]: mean + std · noise, unscaled; sample=False: [2·channels, h, w], mean and std
    text     [1, max_tokens, width], behind the caption's end its last token again
    mask     [1, 1, max_tokens] int16
    info     {"img_hw": [height, width] of the original, "aspect_ratio": of its bin, "mask_type": "null"}

    Of two captions the first is taken with probability `first`.
    """

    def __init__(self, folder, captions=None, first=0.5, sample=True, max_tokens=None):
        self.features = Features(folder)
        model = self.features.shard(0) if self.features.ranges else None
        if not model or not model.has_pictures or not model.captions:
            raise ValueError(f"{folder}: holds no texts with pictures")
        self.indices, self.shapes = [], []
        for number, (begin, _) in enumerate(self.features.ranges):
            shard = self.features.shard(number)
            rows = np.flatnonzero(shard.complete)
            self.indices += (begin + rows).tolist()
            self.shapes += map(tuple, shard.shape[rows].tolist())
        self.captions = captions or model.captions
        self.first, self.sample = first, sample
        self.max_tokens = max_tokens or model.max_tokens

    def __len__(self):
        return len(self.indices)

    def _text(self, row):
        caption = self.captions[0]
        if len(self.captions) > 1 and random.random() >= self.first:
            caption = self.captions[1]
        values = to_tensor(row.texts[caption].values)[:self.max_tokens]
        missing = self.max_tokens - len(values)
        mask = torch.ones(1, 1, self.max_tokens, dtype=torch.int16)
        mask[..., len(values):] = 0
        return torch.cat([values, values[-1:].expand(missing, -1)])[None], mask

    def __getitem__(self, number):
        row = self.features[self.indices[number]]
        text, mask = self._text(row)
        latents = to_tensor(row.picture.values)
        if self.sample:
            mean, std = latents.chunk(2)
            latents = mean + std * torch.randn_like(mean)
        info = {"img_hw": torch.tensor(row.picture.size, dtype=torch.float32), "aspect_ratio": row.picture.ratio,
                "mask_type": "null"}
        return latents, text, mask, info


class BinBatches(torch.utils.data.Sampler):
    """Batches of equally large pictures for DataLoader(batch_sampler=…), in an order that seed and epoch fix. What is
    left over of a bin makes no batch."""

    def __init__(self, dataset, batch_size, seed=0, epoch=0):
        self.shapes, self.batch_size, self.seed, self.epoch = dataset.shapes, batch_size, seed, epoch

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        stream = _Random(self.seed, self.epoch, 0)
        numbers, bins = list(range(len(self.shapes))), {}
        for i in range(len(numbers) - 1, -1, -1):
            j = stream.below(i + 1)
            numbers[i], numbers[j] = numbers[j], numbers[i]
            batch = bins.setdefault(self.shapes[numbers[i]], [])
            batch.append(numbers[i])
            if len(batch) == self.batch_size:
                yield bins.pop(self.shapes[numbers[i]])

    def __len__(self):
        counts = {}
        for shape in self.shapes:
            counts[shape] = counts.get(shape, 0) + 1
        return sum(count // self.batch_size for count in counts.values())
