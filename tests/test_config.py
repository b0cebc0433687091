import dataclasses
import math
from dataclasses import dataclass
from typing import Literal

import pytest
import yaml

from oltr.config import DataConfig, RunConfig, StageConfig, build
from oltr.errors import UserError


def test_plain_values_become_nested_dataclasses():
    config = build(
        RunConfig,
        yaml.safe_load(
            """
            method: plain
            weights: null
            data: {image_size: 32, mean: [0.5, 0.5, 0.5], jitter: 0}
            stage1: {epochs: 5, lr: 5e-4, lr_milestones: {3: 0.1, 4: 1e-2}, frozen: [backbone]}
            stage2: null
            settings: {anything: [1, 2]}
            """
        ),
    )
    assert config.data == DataConfig(image_size=32, mean=(0.5, 0.5, 0.5), jitter=0.0)
    assert isinstance(config.data.jitter, float)
    assert config.stage1.lr == 5e-4  # YAML reads it as a string
    assert config.stage1.lr_milestones == {3: 0.1, 4: 0.01} and config.stage1.frozen == ("backbone",)
    assert config.stage2 is None and config.weights is None and config.num_stages == 1
    assert config.stage(1) is config.stage1
    assert config.settings == {"anything": [1, 2]}


def test_a_config_written_out_is_read_back():
    config = RunConfig(
        stage2=StageConfig(lr_milestones={20: 0.1}, frozen=("backbone",)), settings={"fc": None}
    )
    written = yaml.safe_dump(to_lists(dataclasses.asdict(config)))
    assert build(RunConfig, yaml.safe_load(written)) == config
    assert config.num_stages == 2 and config.stage(2) is config.stage2


def to_lists(values):
    if isinstance(values, dict):
        return {key: to_lists(value) for key, value in values.items()}
    return [to_lists(value) for value in values] if isinstance(values, (list, tuple)) else values


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"methd": "plain"}, r"no setting called 'methd'.*did you mean method"),
        ({"lr": 0.01}, r"no setting called 'lr'\.\ndid you mean stage1\.lr or stage2\.lr\?$"),
        ({"image_size": 64}, r"no setting called 'image_size'\.\ndid you mean data\.image_size\?$"),
        (
            {"batchsize": 16},
            r"no setting called 'batchsize'.*did you mean stage1\.batch_size or stage2\.batch_size\?$",
        ),
        (
            {"memry": False, "settings": {"memory": True}},
            r"no setting called 'memry'.*mean settings\.memory or",
        ),
        ({"stage1": {"epoch": 3}}, r"no setting in stage1 called 'epoch'.*did you mean epochs"),
        ({"data": {"zzz": 3}}, r"no setting in data called 'zzz'.*one of: .*image_size"),
        ({3: "plain"}, r"no setting called '3'"),
        ({"seed": "one"}, r"seed is 'one'.*type int"),
        ({"seed": 1.5}, r"seed is 1\.5.*type int"),
        ({"seed": True}, r"seed is True.*type int"),
        ({"seed": None}, r"seed is None.*type int"),
        ({"backbone": 3}, r"backbone is 3.*type str"),
        ({"weights": 3}, r"weights is 3.*type str"),
        ({"data": {"flip": 1}}, r"data\.flip is 1.*type bool"),
        ({"data": {"jitter": True}}, r"data\.jitter is True.*type float"),
        ({"data": {"jitter": "much"}}, r"data\.jitter is 'much'.*type float"),
        ({"data": {"jitter": [1]}}, r"data\.jitter is \[1\].*type float"),
        ({"data": {"crop": "resize"}}, r"data\.crop is 'resize'.*one of: resized, random, padded"),
        ({"data": {"mean": [0.5]}}, r"data\.mean is \[0\.5\].*3 entries"),
        ({"data": {"mean": 0.5}}, r"data\.mean is 0\.5"),
        ({"data": {"mean": ["a", 0.5, 0.5]}}, r"data\.mean is 'a'.*type float"),
        ({"stage1": {"lr_milestones": {"ten": 0.1}}}, r"stage1\.lr_milestones is 'ten'.*type int"),
        ({"stage1": {"lr_milestones": [10, 20]}}, r"stage1\.lr_milestones is \[10, 20\]"),
        ({"stage1": {"frozen": "backbone"}}, r"stage1\.frozen is 'backbone'"),
        ({"stage1": None}, r"stage1 is None"),
        ({"stage2": 5}, r"stage2 is 5"),
        ({"stage2": {"lr": "fast"}}, r"stage2\.lr is 'fast'"),
        ({"precision": "float16"}, r"precision is 'float16'.*one of: auto, float32, bfloat16"),
    ],
)
def test_a_wrong_name_or_type_is_told_with_its_place(values, message):
    with pytest.raises(UserError, match=f"(?s){message}"):
        build(RunConfig, values)


@dataclass(frozen=True)
class Whole:
    width: int | None
    form: Literal["a", "b"]


def test_what_is_missing_is_told():
    with pytest.raises(UserError, match=r"(?s)settings is incomplete.*It needs form"):
        build(Whole, {"width": 3}, "settings")
    assert build(Whole, {"width": None, "form": "a"}) == Whole(None, "a")


def test_step_drops_hold_from_their_epoch_on():
    stage = StageConfig(epochs=30, lr_milestones={20: 0.01, 10: 0.1})
    assert [stage.lr_factor(epoch) for epoch in (0, 9, 10, 19, 20, 29)] == [1.0, 1.0, 0.1, 0.1, 0.01, 0.01]


def test_the_usual_cifar_schedule():
    stage = StageConfig(epochs=200, lr=0.1, warmup_epochs=5, lr_milestones={160: 0.01, 180: 0.0001})
    rates = [stage.lr * stage.lr_factor(epoch) for epoch in range(200)]
    for epoch in range(200):
        expected = 0.1 * (epoch + 1) / 5 if epoch < 5 else 0.1
        expected *= 0.0001 if epoch >= 180 else 0.01 if epoch >= 160 else 1
        assert rates[epoch] == pytest.approx(expected)


@pytest.mark.parametrize("warmup", [0, 3])
def test_cosine_falls_from_one_to_nearly_nothing(warmup):
    stage = StageConfig(epochs=12, schedule="cosine", warmup_epochs=warmup, lr_milestones={2: 0.5})
    factors = [stage.lr_factor(epoch) for epoch in range(12)]
    assert factors[:warmup] == pytest.approx([(epoch + 1) / 3 for epoch in range(warmup)])
    for epoch in range(warmup, 12):
        done = (epoch - warmup) / (12 - warmup)
        assert factors[epoch] == pytest.approx((1 + math.cos(math.pi * done)) / 2)
    assert factors[warmup] == 1.0 and 0 < factors[-1] < 0.06
    assert factors[warmup:] == sorted(factors[warmup:], reverse=True)


def test_another_length_moves_drops_and_warm_up_in_proportion():
    stage = StageConfig(epochs=200, warmup_epochs=10, lr_milestones={160: 0.01, 180: 0.0001}, lr=0.3)
    shorter = stage.lasting(20)
    assert (shorter.epochs, shorter.warmup_epochs, shorter.lr_milestones) == (20, 1, {16: 0.01, 18: 0.0001})
    assert shorter.lr == 0.3
    assert stage.lasting(400).lr_milestones == {320: 0.01, 360: 0.0001}
    assert stage.lasting(200) == stage


def test_a_very_short_run_still_begins_at_the_full_rate():
    stage = StageConfig(epochs=30, lr_milestones={20: 0.01, 10: 0.1})
    assert stage.lasting(1).lr_factor(0) == 1.0
    assert [stage.lasting(2).lr_factor(epoch) for epoch in range(2)] == [1.0, 0.01]
    assert stage.lasting(0).epochs == 0
