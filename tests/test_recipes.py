import pytest
import torch

from oltr.cli.main import _guarded
from oltr.config import RunConfig, StageConfig
from oltr.errors import UserError
from oltr.methods import METHODS
from oltr.recipes import file_names, find_file, load_recipe, merge, recipe_names, resolve, with_epochs
from oltr.recipes import files as recipe_files
from oltr.training.configure import assemble, configure, recipe_config
from oltr.training.limits import check_limits
from tests.helpers.installed import installed

ROLES = {"backbone", "attention", "direct_feature", "classifier", "memory"}


@pytest.mark.parametrize("method", list(METHODS))
@pytest.mark.parametrize("recipe", recipe_names())
def test_every_recipe_fits_every_method(recipe, method):
    config = assemble(recipe, method, {})
    check_limits(config)
    assert (config.recipe, config.method) == (recipe, method)
    assert config.data.stored_size >= config.data.image_size
    METHODS[method](config.settings, torch.tensor([5, 3]), config.data.image_size)
    assert config.stage(config.num_stages).epochs > 0
    for stage in range(1, config.num_stages + 1):
        assert all(0 <= at < config.stage(stage).epochs for at in config.stage(stage).lr_milestones)
        assert set(config.stage(stage).frozen) <= ROLES


@pytest.mark.parametrize("recipe", recipe_names())
def test_a_fitted_last_stage_does_not_cost_training(recipe):
    """Its head is fitted once: all other epochs are those of a method that learns by steps alone."""
    fitted, by_steps = (resolve(recipe, method) for method in ("logit-adjusted", "balanced-softmax"))
    if by_steps.weights is not None or "backbone" in by_steps.stage(by_steps.num_stages).frozen:
        pytest.skip("the backbone comes trained, or is frozen for every method")
    assert fitted.stage1.epochs + 1 == sum(by_steps.stage(n + 1).epochs for n in range(by_steps.num_stages))


@pytest.mark.parametrize("recipe", recipe_names())
def test_every_recipe_says_what_it_is_about_and_names_methods_that_exist(recipe):
    loaded = load_recipe(recipe)
    assert loaded.name == recipe and loaded.about
    assert set(loaded.methods) <= set(METHODS)


def test_recipes_of_the_released_code_have_its_attention():
    for recipe in ("imagenet-lt", "places-lt", "sun-lt"):
        settings = recipe_config(recipe, "oltr").settings
        assert settings["attention_form"] == settings["attention_start"] == "released"
    assert recipe_config("glyphs", "oltr").settings["attention_start"] == "zero"


def test_glyphs_are_never_mirrored():
    assert not resolve("glyphs", "oltr").data.flip


RELEASED = {
    "squash": "released",
    "logit_scale": 16.0,
    "reachability_scale": 10.0,
    "coefficients": "softmax",
    "constant_centroids": True,
    "hallucinator_start": "classifier",
    "centroid_start": "class-means",
    "centroid_loss": "released",
    "centroid_weight": 0.01,
    "repel": 0.01,
    "margin": 10.0,
}
PRINTED = {
    "squash": "paper",
    "logit_scale": 16.0,
    "reachability_scale": 1.0,
    "coefficients": "raw",
    "centroid_start": "mini-batches",
    "centroid_loss": "paper",
    "centroid_weight": 0.1,
    "margin": 5.0,
}


@pytest.mark.parametrize(("method", "numbers"), [("oltr", RELEASED), ("oltr-paper", PRINTED)])
def test_the_released_and_the_printed_form_have_their_numbers(method, numbers):
    settings = METHODS[method].all_settings()
    assert {name: settings[name] for name in numbers} == numbers


@pytest.mark.parametrize("recipe", ["imagenet-lt", "places-lt", "sun-lt"])
def test_pictures_become_squares_as_released_and_as_printed(recipe):
    for method in ("oltr", "plain", "balanced-softmax"):
        data = resolve(recipe, method).data
        assert (data.resize, data.crop, data.smallest_crop) == ("short-side", "resized", 0.08)
    printed = resolve(recipe, "oltr-paper").data
    assert (printed.resize, printed.crop) == ("stretch", "random")
    for each in (data, printed):
        assert (each.stored_size, each.image_size, each.interpolation) == (256, 224, "bilinear")


def own_recipe(folder, text, name="mine.yaml"):
    (folder / name).write_text(text, encoding="utf-8")
    return str(folder / name)


def test_later_values_win(tmp_path):
    recipe = own_recipe(
        tmp_path,
        """
        about: für mich
        run:
          backbone: resnet10_half
          seed: 3
          stage1: {epochs: 7, lr: 0.3, lr_milestones: {3: 0.1, 5: 0.01}}
          stage2: {epochs: 4, sampler: balanced, images_per_class: 9, lr: 0.2}
        methods:
          oltr: {stage2: {lr: 0.02, momentum: 0.5}, settings: {fc: 64, margin: 3}}
        """,
    )
    config = recipe_config(
        recipe, "oltr", {"stage2": {"momentum": 0.7}, "stage1": {"lr_milestones": {2: 0.5}}, "seed": 4}
    )
    assert config.stage1.momentum == StageConfig().momentum  # the defaults
    assert (config.backbone, config.stage1.epochs, config.stage1.lr) == (
        "resnet10_half",
        7,
        0.3,
    )  # the recipe
    assert config.stage2.sampler == "class-aware"  # the method's file
    assert config.stage2.images_per_class == 9  # the recipe again
    assert (config.stage2.lr, config.settings["fc"], config.settings["margin"]) == (
        0.02,
        64,
        3,
    )  # recipe, of oltr
    assert config.settings["logit_scale"] == 16.0  # the method's defaults
    assert (config.stage2.momentum, config.seed) == (0.7, 4)  # the command line
    assert config.stage1.lr_milestones == {2: 0.5}  # a table of drops is replaced whole
    plain = resolve(recipe, "plain")
    assert (plain.stage2.lr, plain.stage2.sampler, plain.settings) == (0.2, "balanced", {})


def test_a_recipe_can_stand_on_another(tmp_path):
    recipe = own_recipe(
        tmp_path, "base: glyphs\nrun: {stage1: {epochs: 2}}\nmethods: {plain: {stage2: null}}"
    )
    mine, glyphs = resolve(recipe, "plain"), resolve("glyphs", "plain")
    assert mine.stage1.epochs == 2 and mine.stage2 is None
    assert mine.data == glyphs.data and mine.stage1.lr == glyphs.stage1.lr
    assert load_recipe(recipe).about == load_recipe("glyphs").about
    assert load_recipe(recipe).expect == {}  # another setting has other numbers


def test_empty_entries_are_no_entries(tmp_path):
    recipe = own_recipe(tmp_path, "about: nothing\nrun:\nmethods:\n  plain:\nexpect:\n")
    assert resolve(recipe, "plain").stage1 == RunConfig().stage1
    assert resolve(own_recipe(tmp_path, ""), "plain").stage1 == RunConfig().stage1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("runs: {seed: 1}", r"no entry in recipe mine\.yaml called 'runs'.*did you mean run"),
        ("run: {sed: 1}", r"no setting called 'sed'.*did you mean seed"),
        ("run: [1, 2]", r"run in recipe mine\.yaml should hold named entries"),
        ("methods: {plain: 3}", r"plain in recipe .*mine\.yaml should hold named entries"),
        ("- 1", r"mine\.yaml should hold named entries"),
        ("run: {seed: [", r"mine\.yaml is not valid YAML"),
        ("base: glyps", r"no recipe called 'glyps'.*did you mean glyphs"),
    ],
)
def test_a_wrong_recipe_is_one_message(text, message, tmp_path):
    with pytest.raises(UserError, match=f"(?s){message}"):
        resolve(own_recipe(tmp_path, text), "plain")


def test_a_recipe_in_another_encoding_is_one_message(tmp_path):
    (tmp_path / "mine.yaml").write_bytes("about: für".encode("utf-16"))
    with pytest.raises(UserError, match="not valid YAML"):
        load_recipe(str(tmp_path / "mine.yaml"))


def test_unknown_names_get_a_suggestion(tmp_path):
    with pytest.raises(UserError, match=r"(?s)no recipe called 'glyph'.*did you mean glyphs"):
        resolve("glyph", "plain")
    with pytest.raises(UserError, match=r"(?s)no method called 'oltr-papr'.*did you mean oltr-paper"):
        configure("glyphs", "oltr-papr")
    with pytest.raises(UserError, match=r"There is no file .*none\.yaml"):
        resolve(str(tmp_path / "none.yaml"), "plain")


def test_a_method_needs_no_file():
    config = resolve("glyphs", "somebody-elses", {"stage2": {"lr": 0.5}}, {"tau": 2, "width": None})
    assert config.stage1 == resolve("glyphs", "plain").stage1 and config.stage2.lr == 0.5
    assert (config.method, config.settings) == ("somebody-elses", {"tau": 2, "width": None})


@pytest.fixture
def birds(tmp_path, monkeypatch):
    """An installed package with recipes, and one that is not there any more."""
    files = {
        "bird_recipes/__init__.py": "raise RuntimeError('recipes are read without importing this')",
        "bird_recipes/birds.yaml": "about: birds\nbase: photos\nrun: {seed: 9}\nmethods: {plain: {seed: 8}}",
        "bird_recipes/glyphs.yaml": "about: other glyphs",
        "bird_recipes/methods/beak.yaml": "stage2: {sampler: balanced}\nsettings: {length: 3}",
        "bird_recipes/suites/flock.yaml": "about: a table",
    }
    installed(tmp_path, "birds", files, {"oltr.recipes": {"birds": "bird_recipes"}})
    installed(tmp_path, "dodos", {}, {"oltr.recipes": {"dodos": "dodo_recipes"}})
    monkeypatch.syspath_prepend(tmp_path)
    recipe_files._from_plugins.cache_clear()
    yield tmp_path / "bird_recipes"
    recipe_files._from_plugins.cache_clear()


def test_recipes_of_other_packages(birds, capsys):
    assert resolve("birds", "oltr").seed == 9 and resolve("birds", "plain").seed == 8
    beak = resolve("birds", "beak", settings={"length": 1, "colour": "red"})
    assert beak.settings == {"length": 3, "colour": "red"} and beak.stage2.sampler == "balanced"
    assert "birds" in recipe_names() and file_names("suites").count("flock") == 1
    assert find_file("flock", "suites") == birds / "suites" / "flock.yaml"
    assert load_recipe("glyphs").about != "other glyphs" and recipe_names().count("glyphs") == 1
    told = capsys.readouterr().err.splitlines()
    assert len(told) == 2
    assert "'birds' of birds" in told[0] and "there are others called glyphs.yaml" in told[0]
    assert "'dodos' of dodos" in told[1] and "no folder of dodo_recipes" in told[1]


def test_a_broken_recipe_of_another_package_does_not_stop_the_listing(birds, capsys):
    (birds / "owls.yaml").write_text("run: [")
    assert _guarded(["recipes"]) == 0
    said = capsys.readouterr()
    assert "birds" in said.out and "glyphs" in said.out and "owls" not in said.out
    assert "the recipe owls is left out" in said.err
    assert _guarded(["recipes", "owls"]) == 2


def test_recipes_beside_a_module(tmp_path, monkeypatch):
    installed(
        tmp_path, "one", {"one_file.py": "", "mine.yaml": "about: x"}, {"oltr.recipes": {"one": "one_file"}}
    )
    monkeypatch.syspath_prepend(tmp_path)
    recipe_files._from_plugins.cache_clear()
    assert load_recipe("mine").about == "x"
    recipe_files._from_plugins.cache_clear()


def test_merge_leaves_its_inputs_alone():
    below, above = (
        {"a": {"b": 1, "c": 2}, "lr_milestones": {1: 2}, "x": 3},
        {"a": {"c": 5}, "lr_milestones": {7: 8}, "x": None},
    )
    assert merge(below, above) == {"a": {"b": 1, "c": 5}, "lr_milestones": {7: 8}, "x": None}
    assert below == {"a": {"b": 1, "c": 2}, "lr_milestones": {1: 2}, "x": 3} and above["a"] == {"c": 5}


TWO = RunConfig(
    stage1=StageConfig(epochs=30, lr_milestones={10: 0.1}),
    stage2=StageConfig(epochs=60, lr_milestones={20: 0.1}),
)


def test_epochs_change_one_stage_or_both():
    assert with_epochs(TWO, (3,)).stage1 == TWO.stage1.lasting(3)
    assert with_epochs(TWO, (3,)).stage2 == TWO.stage2
    both = with_epochs(TWO, (3, 6))
    assert (both.stage1.epochs, both.stage2.epochs) == (3, 6)
    assert (both.stage1.lr_milestones, both.stage2.lr_milestones) == ({1: 0.1}, {2: 0.1})
    assert with_epochs(TWO, (0, 6)).stage1.epochs == 0


def test_of_a_single_stage_one_number_is_its_epochs():
    one = with_epochs(with_epochs(TWO, (0, 60)), (6,))
    assert (one.stage1.epochs, one.stage2) == (0, TWO.stage2.lasting(6))
    with pytest.raises(UserError, match=r"(?s)trains nothing.*Try: --epochs 0 6"):
        with_epochs(one, (0,))


@pytest.mark.parametrize("epochs", [(0,), (0, 0), (-1,), (5, -2), ()])
def test_epochs_that_train_nothing_are_refused(epochs):
    with pytest.raises(UserError, match=r"(?s)trains nothing.*Try: --epochs 30 60"):
        with_epochs(TWO, epochs)


def test_more_epochs_than_stages_are_refused():
    one = RunConfig(method="plain", recipe="mine")
    with pytest.raises(
        UserError, match=r"(?s)2 numbers, but plain under recipe mine has 1 stage\..*--epochs 8"
    ):
        with_epochs(one, (3, 5))
    with pytest.raises(UserError, match=r"(?s)3 numbers.*has 2 stages\..*--epochs 3 5"):
        with_epochs(TWO, (3, 5, 1))
