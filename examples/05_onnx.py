"""Predictions of an exported model for image files, with only onnxruntime, Pillow and NumPy.

oltr export runs/photos --onnx birds.onnx, then on any machine: python 05_onnx.py birds.onnx a.jpg b.jpg ...
"""

import sys

import numpy as np
import onnxruntime
from PIL import Image, ImageOps

session = onnxruntime.InferenceSession(sys.argv[1])
names = [output.name for output in session.get_outputs()]
for path in sys.argv[2:]:
    with Image.open(path) as image:
        # The only preprocessing outside the model: EXIF rotation and RGB.
        pixels = np.asarray(ImageOps.exif_transpose(image).convert("RGB"))
    answer = dict(zip(names, session.run(None, {"pixels": pixels[np.newaxis]}), strict=True))
    label, sure = answer["label"][0], answer.get("calibrated_probability", answer["probability"])[0]
    print(f"{path}: {'unknown, most like ' if answer['unknown'][0] else ''}{label} ({100 * sure:.0f} %)")
