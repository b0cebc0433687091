import pytest
import torch

from oltr.nn.class_rows import class_sums, take_rows

LABELS = torch.tensor([3, 0, 3, 3, 1, 0])


def test_the_sum_of_a_class_stands_in_the_row_of_its_first_image():
    x = torch.randn(6, 4, dtype=torch.float64)
    expected = torch.zeros(6, 4, dtype=torch.float64)
    for row, label in enumerate(LABELS.tolist()):
        first = LABELS.tolist().index(label)
        expected[first] += x[row]
    torch.testing.assert_close(class_sums(x, LABELS), expected)
    assert class_sums(x, LABELS)[[2, 3, 5]].abs().max() == 0


def test_sums_are_as_exact_under_autocast():
    x = torch.randn(6, 4)
    exact = class_sums(x, LABELS)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(class_sums(x, LABELS), exact)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_rows_and_their_gradient_are_those_of_indexing(dtype):
    x = torch.randn(5, 4, dtype=dtype, requires_grad=True)
    weights = torch.randn(6, 4, dtype=dtype)
    assert torch.equal(take_rows(x, LABELS), x[LABELS])
    (found,) = torch.autograd.grad((take_rows(x, LABELS) * weights).sum(), x)
    (expected,) = torch.autograd.grad((x[LABELS] * weights).sum(), x)
    torch.testing.assert_close(found, expected)
    if dtype == torch.float64:
        assert torch.autograd.gradcheck(lambda rows: take_rows(rows, LABELS), (x,))
