import torch

from oltr.nn.direct_feature import DirectFeature


def pool_loop(image):
    """Mean over positions, channel by channel."""
    channels, height, width = image.shape
    means = []
    for channel in range(channels):
        total = sum(float(image[channel, y, x]) for y in range(height) for x in range(width))
        means.append(total / (height * width))
    return means


def test_without_fc_it_is_the_mean_over_positions():
    torch.manual_seed(0)
    direct_feature, f = DirectFeature(5), torch.randn(3, 5, 2, 4)
    assert direct_feature.dims == 5
    assert not list(direct_feature.parameters())
    expected = torch.tensor([pool_loop(image) for image in f])
    torch.testing.assert_close(direct_feature(f), expected, rtol=1e-5, atol=1e-6)


def test_with_fc_a_linear_layer_and_relu_follow():
    torch.manual_seed(0)
    direct_feature, f = DirectFeature(5, fc=7), torch.randn(3, 5, 2, 4)
    assert direct_feature.dims == 7
    weight, bias = direct_feature.fc[0].weight.tolist(), direct_feature.fc[0].bias.tolist()
    expected = torch.zeros(3, 7)
    for b, image in enumerate(f):
        pooled = pool_loop(image)
        for d in range(7):
            value = sum(weight[d][c] * pooled[c] for c in range(5)) + bias[d]
            expected[b, d] = max(value, 0.0)
    found = direct_feature(f)
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-6)
    assert (found == 0).any() and (found > 0).any()


def test_the_values_by_position_average_to_the_feature_before_its_relu():
    torch.manual_seed(0)
    direct_feature, f = DirectFeature(5, fc=7).double(), torch.randn(3, 5, 2, 4, dtype=torch.float64)
    linear = direct_feature.fc[0]
    values = direct_feature.by_position(f)
    assert values.shape == (3, 7, 2, 4)
    for neuron in range(7):  # w·f_p / P + b / P, summed over the P positions
        shares = [
            (linear.weight[neuron] @ f[:, :, row, column].T + linear.bias[neuron]) / 8
            for row in range(2)
            for column in range(4)
        ]
        torch.testing.assert_close(values[:, neuron].flatten(1).T, 8 * torch.stack(shares))
        torch.testing.assert_close(sum(shares), linear(f.mean(dim=(2, 3)))[:, neuron])
    torch.testing.assert_close(values.mean(dim=(2, 3)).relu(), direct_feature(f))


def test_without_a_layer_the_values_by_position_are_the_map():
    f = torch.randn(3, 5, 2, 4)
    assert DirectFeature(5).by_position(f) is f
