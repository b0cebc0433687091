"""Small reports to draw and to load."""

from oltr.runs.report import Report


def sample_report(method="oltr", **more) -> Report:
    return Report.from_dict(sample_data(method, **more))


def sample_data(method="oltr", *, with_open=True, names=("cat", "dog"), counts=(200, 5), **more) -> dict:
    open_part = {
        "score": "softmax", "threshold": 0.1, "unknown_rate": None, "many": 0.7, "medium": None, "few": 0.25,
        "overall": 0.475, "unknown_recall": 0.5, "f_measure": 0.5, "f_measure_2019": 0.55, "auroc": 0.8,
    }  # fmt: skip
    open_part |= more.pop("open", {})
    return {
        "schema": 1,
        "method": method,
        "backbone": "resnet10",
        "num_classes": len(names),
        "shots": {"many": 1, "medium": 0, "few": 1},
        "closed": {"many": 0.75, "medium": None, "few": 0.3, "overall": 0.525, "macro_f1": 0.5},
        **({"open": open_part} if with_open else {}),
        "per_class": [
            {"name": name, "train_count": count, "accuracy": accuracy, "f1": 0.5}
            for name, count, accuracy in zip(names, counts, (0.75, 0.3), strict=False)
        ],
        "train_seconds": 12.0,
        "expect": {},
        **more,
    }
