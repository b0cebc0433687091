import doctest

import pytest

from oltr.metrics import accuracy, detection, fmeasure, running, shots

MODULES = [accuracy, detection, fmeasure, running, shots]


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.__name__)
def test_docstring_examples(module):
    results = doctest.testmod(module)
    assert results.attempted > 0 and results.failed == 0
