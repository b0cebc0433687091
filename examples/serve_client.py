"""Predictions of `oltr serve` for the images of a folder, with only the standard library.

oltr serve runs/photos, then: python serve_client.py http://127.0.0.1:8000 new/ (a token: in OLTR_TOKEN)
"""

import json
import os
import sys
from pathlib import Path
from urllib.request import Request, urlopen
from uuid import uuid4

AT_A_TIME = 16  # the service accepts up to 64 per request
server, folder = sys.argv[1].rstrip("/"), Path(sys.argv[2])
paths = sorted(path for path in folder.rglob("*") if path.is_file())
for some in (paths[start : start + AT_A_TIME] for start in range(0, len(paths), AT_A_TIME)):
    boundary = uuid4().hex
    head = f'--{boundary}\r\ncontent-disposition: form-data; name="files"; filename="image"\r\n\r\n'.encode()
    body = b"".join(head + path.read_bytes() + b"\r\n" for path in some) + f"--{boundary}--\r\n".encode()
    headers = {"content-type": f"multipart/form-data; boundary={boundary}"}
    headers |= {"authorization": f"Bearer {os.environ.get('OLTR_TOKEN', '')}"}
    with urlopen(Request(f"{server}/predict", body, headers), timeout=300) as response:
        answers = json.load(response)["predictions"]  # in the order sent
    for path, answer in zip(some, answers, strict=True):
        sure = answer["calibrated_probability"] or answer["probability"] or 0
        name = f"{'unknown, most like ' if answer['unknown'] else ''}{answer['label']} ({100 * sure:.0f} %)"
        print(f"{path}: {answer['error'] or name}")
