"""All figures of the paper and some beyond it: what each shows, what it needs, and what makes it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from matplotlib.figure import Figure

from oltr.report import choose_runs, run_figures
from oltr.report.choose_runs import Runs

BEYOND = "beyond the paper"
OF_A_RUN = "oltr report RUN --figures DIR"
OF_SEVERAL = "oltr report RUN RUN ... --figures DIR"


@dataclass(frozen=True)
class Entry:
    """A figure; `draw` raises UserError where these runs have not what it needs, and is None for a figure of
    many trainings, which `made_by` tells."""

    name: str  # also of its files
    title: str
    paper: str  # its number there, or BEYOND
    caption: str  # what it shows and what to look for
    needs: str
    made_by: str
    draw: Callable[[Runs], Figure] | None = None
    choose: Callable[[Runs], Runs] | None = None  # which of the runs it shows; None: all of them
    photographs: bool = False  # shows images, whose colours must stay as they are


CATALOGUE = (
    Entry(
        "method",
        "The method",
        "Fig. 2",
        "The boxes from image to answer as the network has them, with the shape of what leaves each and the "
        "number of parameters inside. Pale boxes are parts of the paper's method that it does without. Look "
        "at how little the memory costs beside the backbone.",
        "the run's weights",
        OF_A_RUN,
        run_figures.draw_method,
    ),
    Entry(
        "distribution",
        "Training images per class",
        "Fig. 10, 12, 13",
        "The data the runs learned from, largest class first. Look at how long the tail is, and at how much "
        "of it is few-shot: those classes decide whether a method for long tails pays.",
        "training counts",
        OF_A_RUN,
        run_figures.draw_distribution,
    ),
    Entry(
        "spectrum",
        "Head, tail and open classes as one spectrum",
        "Fig. 1, 9",
        "Below, how many training images each class has, largest first; above, on the same ranks, how often "
        "it is recognised when images may also be called unknown; at the right end the open images. Look for "
        "accuracies that fall slower than the area below them, and for a method that does well at both ends: "
        "a high bar of open images is worth little where it comes with a low tail.",
        "test images; the right end needs open ones",
        OF_A_RUN,
        run_figures.draw_spectrum,
        choose_runs.panels,
    ),
    Entry(
        "class-gain",
        "F1 gained over a baseline",
        "Fig. 6",
        "Over the plain model where it is among the runs, else over the first run. Each class, from the most "
        "training images to the fewest, and the open images as one more class. Look right: gains in the tail "
        "are what the method is for. Bars below zero on the left are their price in the head.",
        "two runs on the same images, the plain model or any first run among them",
        OF_SEVERAL,
        run_figures.draw_class_gain,
        choose_runs.baseline_first,
    ),
    Entry(
        "confusion",
        "What images are taken for",
        BEYOND,
        "Rows are what images are, columns what they are taken for. Look along the few-shot row: mistakes "
        "towards many-shot classes mean a head that swallows the tail; those towards unknown, a threshold "
        "that takes rare for new.",
        "test images",
        OF_A_RUN,
        run_figures.draw_confusion,
        choose_runs.panels,
    ),
    Entry(
        "tsne",
        "Features in the plane (t-SNE)",
        "Fig. 3",
        "A sample of up to 5 many-shot and 5 few-shot classes with 20 test images each, and up to 100 open "
        "images. Look for clusters that are tight and apart, also of few-shot classes, and for open images "
        "that keep out of them. Distances between far clusters mean nothing.",
        "test images; meta-embeddings need a memory",
        OF_A_RUN,
        run_figures.draw_embedding,
        choose_runs.panels_of_the_same_images,
    ),
    Entry(
        "centroids",
        "The memory among the features",
        "Fig. 11",
        "What the paper's two steps, sampling neighbourhoods and drawing centroids to them, end in: up to 4 "
        "many-shot and 4 few-shot classes with their centroids and 20 test images each, and open images, in "
        "the plane of their first two principal components, so that distances mean something. Look for "
        "stars amid the images of their class, and for open images away from all stars.",
        "a method with a memory, and the run's weights",
        OF_A_RUN,
        run_figures.draw_centroids,
        choose_runs.with_meta_embedding,
    ),
    Entry(
        "attention",
        "Modulated attention",
        "Fig. 4",
        "Where the network looks, on one test image of each kind. Look for attention that follows the "
        "object, and that differs between classes which are easily confused.",
        "the images, and a method with attention",
        OF_A_RUN,
        run_figures.draw_attention,
        photographs=True,
    ),
    Entry(
        "infused",
        "Concepts infused from the memory",
        "Fig. 7, 14",
        "One test image of each kind, the neurons into which the memory infuses most, and the training "
        "patches that activate these most. Look for relatives: a rare class should borrow from common ones "
        "that share its parts.",
        "the images, and a method with a memory",
        OF_A_RUN,
        run_figures.draw_infused,
        photographs=True,
    ),
    Entry(
        "activation",
        "What infused neurons respond to",
        "Fig. 15",
        "The mean of the training images that activate a neuron least, and of those that do so most. Look "
        "for a visible difference: then the neuron stands for something one can name.",
        "the images, and a method with a memory",
        OF_A_RUN,
        run_figures.draw_activation_averages,
        photographs=True,
    ),
    Entry(
        "threshold",
        "Influence of the threshold",
        "Fig. 8 (b)",
        "Accuracy of known images and F-measure as the threshold moves; the run's own is dashed. Look for a "
        "plateau of the F-measure: a wide one forgives a threshold that was chosen badly. Where few-shot "
        "accuracy falls first, rare classes pay for rejecting unknown ones.",
        "open images; the same score for all runs",
        OF_A_RUN,
        run_figures.draw_threshold_sweep,
        choose_runs.with_open,
    ),
    Entry(
        "open-classes",
        "Influence of the number of open classes",
        "Fig. 8 (c)",
        "The F-measure at the run's threshold as more unseen classes turn up, drawn in random order. Look at "
        "the slope: a flat line means that new classes hardly hurt.",
        "open images whose classes have names, in the run's data",
        OF_A_RUN,
        run_figures.draw_open_classes_sweep,
        choose_runs.with_open_classes,
    ),
    Entry(
        "reachability",
        "Distance to the memory",
        BEYOND,
        "Reachability γ of each shot group and of open images. Look for open images that lie further away "
        "than few-shot ones: as far as they overlap, γ cannot tell rare from new.",
        "a method with a memory",
        OF_A_RUN,
        run_figures.draw_reachability,
        choose_runs.with_memory,
    ),
    Entry(
        "scores",
        "The score that calls images unknown",
        BEYOND,
        "Its values for each shot group and for open images, and the run's threshold. Look at the overlap of "
        "few-shot and open: no threshold separates what overlaps.",
        "test images",
        OF_A_RUN,
        run_figures.draw_scores,
        choose_runs.panels,
    ),
    Entry(
        "oscr",
        "Known named rightly against open let through",
        BEYOND,
        "All thresholds in one line (OSCR). Look at the left end: how many known images are still named "
        "rightly when few open ones may pass. Higher is better.",
        "open images",
        OF_A_RUN,
        run_figures.draw_oscr,
        choose_runs.with_open,
    ),
    Entry(
        "risk-coverage",
        "Risk against coverage",
        BEYOND,
        "How often the network is wrong on the known images of which it is surest. Look for a line that "
        "starts near zero and rises late: then unsure images can be passed on to a person.",
        "test images",
        OF_A_RUN,
        run_figures.draw_risk_coverage,
    ),
    Entry(
        "calibration",
        "Confidence against accuracy",
        BEYOND,
        "Bins of known images from the least sure to the surest. Below the diagonal the network is surer "
        "than it is right; above it, it is too modest.",
        "test images",
        OF_A_RUN,
        run_figures.draw_calibration,
    ),
    Entry(
        "ablation",
        "Ablation study",
        "Fig. 5",
        "Accuracy of each shot group as attention, memory and the other parts are switched on one after the "
        "other, one training each; bars.svg and bars.png beside the table. Every suite draws its rows so.",
        "trainings of its own",
        "oltr suite ablation",
    ),
    Entry(
        "longtail-ness",
        "Influence of the data's longtail-ness",
        "Fig. 8 (a)",
        "Accuracy as the training set becomes more imbalanced, one training for each point.",
        "trainings of its own",
        "oltr suite sweep-longtail",
    ),
)
