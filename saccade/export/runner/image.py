"""Pictures, decoded by Pillow: pip install pillow"""

import io
import math

import numpy as np

PIXELS, LONGER = 1 << 26, 32
FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP", "TIFF")


class InputReader:
    """A path, or the bytes of a picture's file."""

    def __init__(self, about):
        self.about = about

    def encode(self, value, most=None):
        pixels, side = self.pixels(value), self.about["size"]
        top, left = ((length - side) // 2 for length in pixels.shape[:2])
        square = pixels[top : top + side, left : left + side].transpose(2, 0, 1).astype(np.float32)
        mean, deviation = (np.array(self.about[n], dtype=np.float32)[:, None, None] for n in ("mean", "deviation"))
        scaled, patch = (square / np.float32(255) - mean) / deviation, self.about["patch"]
        if patch is None:  # a pretrained network in the graph reads the pixels
            return scaled
        parts = scaled.reshape(3, side // patch, patch, side // patch, patch)
        return parts.transpose(1, 3, 0, 2, 4).reshape(-1, 3 * patch * patch)

    def pixels(self, value):
        """(lines, columns, 3), the shorter side scaled as in training, the right way up, on white."""
        from PIL import Image, ImageOps

        shorter = self.about["resize"]
        with Image.open(io.BytesIO(value) if isinstance(value, bytes) else value, formats=FORMATS) as picture:
            width, height = picture.size
            if width * height > PIXELS or max(width, height) > LONGER * min(width, height) or picture.mode == "F":
                raise ValueError(f"A picture of {width} x {height} pixels, mode {picture.mode}, cannot be read.")
            picture.draft("RGB", (shorter, shorter))
            turned = ImageOps.exif_transpose(picture)
            if turned.mode.startswith("I"):  # 16 bits of grey
                turned = Image.fromarray((np.asarray(turned).astype(np.uint32) >> 8).clip(0, 255).astype(np.uint8))
            if "A" in turned.mode or "a" in turned.mode or "transparency" in turned.info:
                turned = turned.convert("RGBA")
                turned = Image.alpha_composite(Image.new("RGBA", turned.size, "white"), turned)
            turned = turned.convert("RGB")
            factor = shorter / min(turned.size)
            size = tuple(round(length * factor) for length in turned.size)
            size = (shorter, shorter) if self.about["square"] == "stretch" else size
            if size != turned.size:
                turned = turned.resize(size, Image.Resampling.BICUBIC, reducing_gap=3.0)
            return np.array(turned, dtype=np.uint8)

    def size(self, encoded):
        return self.about["positions"]

    def pad(self, several):
        return {"values": np.stack(several), "mask": np.ones((len(several), self.about["positions"]), dtype=bool)}

    def names(self, encoded, count=None):
        positions = count or self.about["positions"]
        grid = math.isqrt(positions)
        if grid**2 != positions:
            return [str(number) for number in range(1, positions + 1)]
        return [f"{line},{column}" for line in range(1, grid + 1) for column in range(1, grid + 1)]

    def seen(self, encoded, weights):
        return weights, self.names(encoded, weights.shape[-1])
