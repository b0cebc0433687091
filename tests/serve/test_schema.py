"""Requests made from the OpenAPI document by schemathesis: whatever is sent, the service does not fail, and
each answer is as the document says."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as some
from schemathesis import Case, GenerationMode
from schemathesis.specs.openapi.checks import negative_data_rejection, positive_data_acceptance

from oltr.serve.app import create_app
from tests.helpers.colours import UNKNOWN
from tests.helpers.serving import png, serving, upload

TOKEN = "a-long-enough-token"
HEADERS = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture
def ask(plain_run, tmp_path) -> Callable[[int, bool], Counter]:
    """So many requests to a service with some images; how many of each status there were."""
    folder = shutil.copytree(plain_run, tmp_path / "run")

    def asked(number: int, always_the_same: bool) -> Counter:
        with serving(folder) as client:
            ids = upload(client, [png(UNKNOWN["cyan"], seed) for seed in range(30)])
            app, found = create_app(client.service, TOKEN), Counter()
            schema = schemathesis.openapi.from_dict(app.openapi())
            schema.app = app
            cases = some.one_of(*(schema.as_strategy(generation_mode=mode) for mode in GenerationMode))

            @settings(
                max_examples=number,
                derandomize=always_the_same,
                database=None,
                deadline=None,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=cases, image=some.sampled_from([*ids, "0" * 32]), there=some.booleans())
            def check(case: Case, image: str, there: bool) -> None:
                if there and case.meta.generation.mode.is_positive:
                    point_at(case, image)
                answer = case.call(headers=HEADERS)
                found[answer.status_code] += 1
                # What fits the document may still be refused (an unknown class), all that is sent in the
                # place of a file is one, and what is too long is refused for that (413).
                excluded = [positive_data_acceptance]
                if case.operation.path in ("/images", "/predict") or answer.status_code == 413:
                    excluded.append(negative_data_rejection)
                case.validate_response(answer, excluded_checks=excluded)

            check()
            assert client.get("/health").status_code == 200
            assert client.get("/state").json()["classes"] >= 2
        return found

    return asked


def point_at(case: Case, image: str) -> None:
    """Have a request name something that is there: left to itself it would hardly ever."""
    if "number" in case.path_parameters:
        case.path_parameters["number"] = image
    if isinstance(case.body, dict) and "images" in case.body:
        case.body["images"] = [image]
    if isinstance(case.body, dict) and "files" in case.body:
        case.body["files"] = [png(UNKNOWN["pink"], len(image))]


def test_requests_of_all_kinds(ask):
    found = ask(150, True)
    assert max(found) < 500 and found[200] > 20 and found[422] > 20


@pytest.mark.soak
def test_two_thousand_requests(ask):
    found = ask(2000, False)
    assert found.total() >= 2000 and max(found) < 500
