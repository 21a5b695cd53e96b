# SPDX-License-Identifier: Apache-2.0
"""The command: python3 -m smalti.convert"""

from __future__ import annotations

import argparse
import sys

from . import Converted, Given, Refused, convert


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="smalti.convert", description="Makes the transformer's directory, in diffusers' layout, of a checkpoint of "
        "PixArt's own code (a .pth file). Nothing in the file is executed.",
        epilog="smalti generate --model PIPELINE --transformer DIR takes the rest of the pipeline from another directory.")
    parser.add_argument("checkpoint", metavar="FILE.pth")
    parser.add_argument("-o", "--output", metavar="DIR", required=True, help="directory that is made")
    parser.add_argument("--ema", action="store_true", help="take state_dict_ema, the average of the weights, not state_dict")
    parser.add_argument("--image-size", type=int, metavar="N",
                        help="side in pixels of the images that it was trained on; needed where the file has no pos_embed")
    parser.add_argument("--interpolation-scale", type=float, metavar="S",
                        help="the training's pe_interpolation; needed where neither pos_embed nor the size tells it")
    parser.add_argument("--heads", type=int, metavar="N", help="attention heads (default: a head for 72 of the width)")
    return parser


def _told(made: Converted, output: str) -> str:
    config = made.config
    state = f" of {made.state}" if made.state else ""
    others = f" (the file has {', '.join(made.others)}, too)" if made.others else ""
    return (f"{output}: {made.tensors} tensors{state}{others}, {config['num_layers']} blocks, for images of "
            f"{8 * config['sample_size']} pixels a side, interpolation scale {config['interpolation_scale']:g}\n"
            f"smalti generate --model PIPELINE --transformer {output} takes the rest from a directory in diffusers' layout")


def main() -> int:
    options = _parser().parse_args()
    given = Given(options.image_size, options.interpolation_scale, options.heads)
    try:
        made = convert(options.checkpoint, options.output, average=options.ema, given=given)
    except (OSError, Refused) as cause:
        print(f"smalti.convert: {cause}", file=sys.stderr)
        return 1
    print(_told(made, options.output))
    return 0


if __name__ == "__main__":
    sys.exit(main())
