# SPDX-License-Identifier: Apache-2.0
"""The world of the embedded model: one or two coloured shapes on a coloured background, and their captions."""

import dataclasses

import numpy as np

COLOURS = {
    "red": (214, 40, 40),
    "green": (42, 157, 74),
    "blue": (38, 84, 212),
    "yellow": (250, 208, 44),
    "orange": (244, 125, 32),
    "purple": (123, 44, 191),
    "pink": (248, 145, 190),
    "cyan": (64, 205, 224),
    "brown": (121, 76, 44),
    "white": (245, 245, 245),
    "black": (26, 26, 30),
    "gray": (140, 144, 150),
}
BACKGROUNDS = ["white", "black", "gray", "cyan", "pink", "yellow", "green", "blue", "brown"]
# Left out of training, so that prompts with them show composition.
HELD_OUT = {
    ("red", "star"),
    ("blue", "heart"),
    ("green", "ring"),
    ("yellow", "cross"),
    ("purple", "triangle"),
    ("orange", "diamond"),
    ("white", "circle"),
    ("pink", "square"),
}
# Of the shorter side.
RADII = {"": 0.22, "small": 0.14, "large": 0.33}
PAIR_RADIUS = 0.19
PAIR_DISTANCE = 0.245
# From the centre, in halves of a side.
PLACES = {
    "in the top left corner": (-0.5, -0.5),
    "in the top right corner": (0.5, -0.5),
    "in the bottom left corner": (-0.5, 0.5),
    "in the bottom right corner": (0.5, 0.5),
    "in the center": (0, 0),
}
RELATIONS = {"to the left of": (-1, 0), "to the right of": (1, 0), "above": (0, -1), "below": (0, 1)}


# Distance from the outline of a shape of radius 1 about the origin, negative inside; y grows downwards.


def circle(x, y):
    return np.hypot(x, y) - 1


def square(x, y):
    return np.maximum(np.abs(x), np.abs(y)) - 0.85


def triangle(x, y):
    return np.maximum(0.88 * np.abs(x) - 0.475 * (y + 1), y - 0.8)


def diamond(x, y):
    return (np.abs(x) + np.abs(y) - 1.15) / np.sqrt(2)


def ring(x, y):
    return np.abs(np.hypot(x, y) - 0.75) - 0.27


def star(x, y):
    """Each of ten halves of a point lies beside the line from its tip to the notch."""
    fifth = 2 * np.pi / 5
    angle = np.abs((np.arctan2(x, -y) + fifth / 2) % fifth - fifth / 2)
    radius = np.hypot(x, y)
    tip = np.array([1.1, 0])
    notch = 0.46 * np.array([np.cos(fifth / 2), np.sin(fifth / 2)])
    normal = np.array([notch[1] - tip[1], tip[0] - notch[0]])
    normal /= np.hypot(*normal)
    return (radius * np.cos(angle) - tip[0]) * normal[0] + (radius * np.sin(angle) - tip[1]) * normal[1]


def heart(x, y):
    """A curve of degree six, by its gradient nearly a distance."""
    up, across = -(y - 0.08) * 1.15, np.abs(x) * 1.1
    value = (across**2 + up**2 - 0.75) ** 3 * 1.2 - across**2 * up**3 * 2.4
    step = float(x[0, 1] - x[0, 0])
    return value / np.maximum(np.hypot(*np.gradient(value, step)), 1e-3 / step)


def cross(x, y):
    across, along = np.abs(x), np.abs(y)
    return np.minimum(np.maximum(across - 0.32, along - 1), np.maximum(across - 1, along - 0.32))


SHAPES = {f.__name__: f for f in (circle, square, triangle, diamond, ring, star, heart, cross)}


@dataclasses.dataclass
class Thing:
    """A coloured shape; its centre and radius in pixels."""

    colour: str
    shape: str
    x: float = 0
    y: float = 0
    radius: float = 0


@dataclasses.dataclass
class Scene:
    background: str
    things: list
    caption: str


def draw(scene, height, width):
    """The picture, 8 bits [height, width, 3]: a little lighter at the top, edges one pixel soft."""
    row, column = np.mgrid[0:height, 0:width].astype(np.float32) + 0.5
    picture = np.multiply.outer(1.03 - 0.06 * row / height, np.array(COLOURS[scene.background], np.float32))
    for thing in scene.things:
        x, y = (column - thing.x) / thing.radius, (row - thing.y) / thing.radius
        cover = np.clip(0.5 - SHAPES[thing.shape](x, y) * thing.radius, 0, 1)[..., None]
        shade = 1.06 - 0.1 * ((x + y) / 2 + 0.5)
        colour = np.multiply.outer(shade, np.array(COLOURS[thing.colour], np.float32))
        picture = picture * (1 - cover) + colour * cover
    return np.clip(picture + 0.5, 0, 255).astype(np.uint8)


def described(words):
    return f"an {words}" if words[0] in "aeiou" else f"a {words}"


def pick(rng, colours):
    """A colour and a shape that are not held out together; not a colour of `colours`."""
    while True:
        colour, shape = str(rng.choice(list(COLOURS))), str(rng.choice(list(SHAPES)))
        if colour not in colours and (colour, shape) not in HELD_OUT:
            return Thing(colour, shape)


def compose_one(rng, background, height, width):
    thing = pick(rng, [background])
    size = str(rng.choice(list(RADII)))
    thing.radius = min(height, width) * RADII[size] * rng.uniform(0.92, 1.08)
    place = "" if rng.random() < 0.35 else str(rng.choice(list(PLACES)))
    if place and size == "large":  # in a corner it would be cut off
        place = "in the center"
    right, down = PLACES.get(place, (0, 0))
    spread = 0.03 if place else 0.04
    thing.x = width * (0.5 + right / 2 + rng.uniform(-spread, spread))
    thing.y = height * (0.5 + down / 2 + rng.uniform(-spread, spread))
    margin = 1.15 * thing.radius
    thing.x = float(np.clip(thing.x, margin, width - margin))
    thing.y = float(np.clip(thing.y, margin, height - margin))
    words = " ".join(w for w in (size, thing.colour, thing.shape) if w)
    return [thing], " ".join(w for w in (described(words), place) if w)


def compose_pair(rng, background, height, width):
    first = pick(rng, [background])
    second = pick(rng, [background, first.colour])
    relation = str(rng.choice(list(RELATIONS)))
    right, down = RELATIONS[relation]
    x, y = width * (0.5 + rng.uniform(-0.03, 0.03)), height * (0.5 + rng.uniform(-0.03, 0.03))
    for thing, side in (first, 1), (second, -1):
        thing.radius = min(height, width) * PAIR_RADIUS * rng.uniform(0.85, 1.15)
        thing.x = x + side * right * PAIR_DISTANCE * width
        thing.y = y + side * down * PAIR_DISTANCE * height
    names = [described(f"{thing.colour} {thing.shape}") for thing in (first, second)]
    return [first, second], f"{names[0]} {relation} {names[1]}"


def compose(rng, height, width):
    background = str(rng.choice(BACKGROUNDS))
    make = compose_one if rng.random() < 0.4 else compose_pair
    things, head = make(rng, background, height, width)
    return Scene(background, things, f"{head} on {described(background)} background")
