"""The alert rules of ``deploy/`` fire when they should and only then."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml

from tests.server.promql import Series, evaluate, firing, seconds

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
RULES = DEPLOY / "prometheus-alerts.yaml"
TESTS = DEPLOY / "prometheus-alerts.test.yaml"
DOCUMENT: dict[str, Any] = yaml.safe_load(TESTS.read_text("utf-8"))
HOUR = 3600.0


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text("utf-8"))["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def series_of(test: dict[str, Any]) -> list[Series]:
    interval = seconds(test["interval"])
    return [Series.of(entry, interval) for entry in test["input_series"]]


def firing_alerts(test: dict[str, Any], at: float) -> dict[str, int]:
    every = seconds(DOCUMENT["evaluation_interval"])
    found = series_of(test)
    return {rule["alert"]: len(firing(rule, found, at, every)) for rule in rules()}


@pytest.mark.parametrize("test", DOCUMENT["tests"], ids=lambda test: test["name"])
def test_the_alerts_fire_as_the_tests_say(test: dict[str, Any]) -> None:
    expected = {
        each["alertname"]: len(each.get("exp_alerts", []))
        for each in test.get("alert_rule_test", [])
    }
    for each in test.get("alert_rule_test", []):
        fired = firing_alerts(test, seconds(each["eval_time"]))
        assert fired[each["alertname"]] == expected[each["alertname"]], each["alertname"]
    for each in test.get("promql_expr_test", []):
        assert each["expr"] == 'count(ALERTS{alertstate="firing"})'
        [sample] = each["exp_samples"]
        fired = firing_alerts(test, seconds(each["eval_time"]))
        assert sum(fired.values()) == sample["value"], fired
    # Of each rule both tests say something.
    assert set(expected) in ({rule["alert"] for rule in rules()}, set())


def test_an_alert_waits_for_its_time() -> None:
    down = next(rule for rule in rules() if rule["alert"] == "SluicegateDown")
    series = [Series("up", frozenset({("job", "sluicegate")}), [(0, 1), (60, 0), (120, 0)])]
    assert [len(firing(down, series, at, 60.0)) for at in (0.0, 60.0, 120.0)] == [0, 0, 1]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("sum(rate(a[10m]))", 0.5),
        ("sum by (tool) (increase(a[1h]))", 1800.0),
        ("max(a) > 4 * 100", 1800.0),
        ("count(a)", 1.0),
        ('sum(rate(a{tool="none"}[10m]))', None),
        ("a > 1e9", None),
        ("histogram_quantile(0.5, b)", 10.0),
        ("histogram_quantile(0.95, b)", 28.0),
    ],
)
def test_an_expression_has_the_value_that_prometheus_gives(
    expression: str, expected: float | None
) -> None:
    counter = Series.of({"series": 'a{tool="pay"}', "values": "0+30x60"}, 60.0)
    buckets = [
        Series.of({"series": f'b{{le="{le}"}}', "values": f"{count}x60"}, 60.0)
        for le, count in (("10", 50), ("30", 100), ("+Inf", 100))
    ]
    found = evaluate(promql_parser.parse(expression), [counter, *buckets], HOUR)
    assert isinstance(found, dict)
    assert list(found.values()) == ([] if expected is None else [pytest.approx(expected)])


@pytest.mark.parametrize(
    "expression", ["sum without (a) (b)", "a / b", "deriv(a[5m])", 'a{b!="c"}']
)
def test_what_is_not_evaluated_is_an_error(expression: str) -> None:
    with pytest.raises(NotImplementedError):
        evaluate(promql_parser.parse(expression), [], HOUR)
