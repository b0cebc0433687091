"""Small tensors everywhere: more than one thread per process only makes the tests slower."""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")
