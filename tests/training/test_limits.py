"""Schedules that make no sense are refused; those of the recipes do, however short the run."""

from __future__ import annotations

import pytest

from oltr.errors import UserError
from oltr.recipes import recipe_names
from oltr.training.configure import configure


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        (["stage1.lr_milestones={10: -1}"], r"stage1\.lr_milestones at epoch 10 is -1.*0 or more"),
        (["stage2.lr_milestones={3: .nan}"], r"stage2\.lr_milestones at epoch 3 is nan"),
        (["stage1.lr_milestones={-2: 0.1}"], r"epoch in stage1\.lr_milestones is -2"),
        (["stage1.ema=1"], r"stage1\.ema is 1.*0 to 1"),
        (["stage2.ema=-0.1"], r"stage2\.ema is -0\.1"),
        (["data.affine=1.5"], r"data\.affine is 1\.5.*0 to 1"),
        (["data.colour=-0.1"], r"data\.colour is -0\.1"),
        (["data.erase=.nan"], r"data\.erase is nan"),
        (["stage1.layer_decay=0"], r"stage1\.layer_decay is 0.*0\.01 to 1"),
        (["stage2.layer_decay=1.1"], r"stage2\.layer_decay is 1\.1"),
        (["stage1.optimizer=adam"], r"stage1\.optimizer is 'adam'.*sgd, adamw"),
        (["stage1.keep_statistics=2"], r"stage1\.keep_statistics is 2.*bool"),
        (["stage1.lr_every=batch"], r"stage1\.lr_every is 'batch'.*epoch, step"),
        (["stage1.epochs=4", "stage1.warmup_epochs=5"], r"stage1\.warmup_epochs is 5.*has 4.*=4 or fewer"),
        (["stage1.nesterov=true", "stage1.momentum=0"], r"stage1\.nesterov is a kind of momentum"),
        (["stage2.nesterov=true", "stage2.optimizer=adamw"], r"stage2\.nesterov.*stage2\.nesterov=false"),
    ],
)
def test_a_schedule_that_makes_no_sense(changes, answer):
    with pytest.raises(UserError, match=f"(?s){answer}"):
        configure("glyphs", "oltr", changes=changes)


def test_a_warm_up_may_last_the_whole_stage_and_one_without_epochs_needs_none():
    assert configure("glyphs", "oltr", changes=["stage1.epochs=4", "stage1.warmup_epochs=4"])
    assert configure("glyphs", "oltr", changes=["stage1.epochs=0", "stage1.warmup_epochs=4"])


@pytest.mark.parametrize("recipe", recipe_names())
@pytest.mark.parametrize("epochs", [(), (1,), (3,), (1, 1)])
def test_the_recipes_are_within_the_limits_at_any_length(recipe, epochs):
    assert configure(recipe, "oltr", epochs=epochs)
