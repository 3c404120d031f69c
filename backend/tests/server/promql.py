"""Evaluates the part of PromQL that the alert rules use, over the series of a test of promtool.

`promql_parser` parses as Prometheus does; what follows from it is computed here, so that the rules
are tested where promtool is not installed. Anything else raises NotImplementedError.
"""

from __future__ import annotations

import itertools
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import promql_parser as promql

Labels = frozenset[tuple[str, str]]
Vector = dict[Labels, float]

LOOKBACK = 300.0
"""Seconds for which a sample counts."""

_SERIES = re.compile(r"(\w+)\{(.*)\}")
_LABEL = re.compile(r'(\w+)="([^"]*)"')
_VALUES = re.compile(r"(-?[\d.]+)(?:([+-][\d.]+))?x(\d+)")
_COMPARISONS: Mapping[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    "<": operator.lt,
    "==": operator.eq,
}
_ARITHMETIC: Mapping[str, Callable[[float, float], float]] = {
    "*": operator.mul,
    "/": operator.truediv,
    "+": operator.add,
    "-": operator.sub,
}
_AGGREGATES: Mapping[str, Callable[[list[float]], float]] = {"sum": sum, "max": max, "count": len}


@dataclass(frozen=True)
class Series:
    """The samples of a series as pairs of seconds and value."""

    name: str
    labels: Labels
    samples: list[tuple[float, float]]

    @classmethod
    def of(cls, entry: Mapping[str, str], interval: float) -> Series:
        """Read an entry of ``input_series``, with values such as ``0+10x90``."""
        named, values = _SERIES.fullmatch(entry["series"]), _VALUES.fullmatch(entry["values"])
        assert named is not None
        assert values is not None
        first, step = float(values[1]), float(values[2] or 0)
        samples = [(i * interval, first + i * step) for i in range(int(values[3]) + 1)]
        return cls(named[1], frozenset(_LABEL.findall(named[2])), samples)


def seconds(text: str) -> float:
    """Return a duration of Prometheus, such as ``5m``, in seconds."""
    duration: timedelta = promql.parse_duration(text)
    return duration.total_seconds()


def evaluate(expression: Any, series: list[Series], at: float) -> Vector | float:
    """Return the value of a parsed expression at a time."""
    match type(expression).__name__:
        case "NumberLiteral":
            return float(expression.val)
        case "ParenExpr":
            return evaluate(expression.expr, series, at)
        case "VectorSelector":
            return {
                found.labels: recent[-1][1]
                for found in _selected(expression, series)
                if (recent := [s for s in found.samples if at - LOOKBACK < s[0] <= at])
            }
        case "BinaryExpr":
            return _binary(expression, series, at)
        case "AggregateExpr":
            return _aggregate(expression, series, at)
        case "Call":
            return _call(expression, series, at)
    raise NotImplementedError(type(expression).__name__)


def _selected(selector: Any, series: list[Series]) -> list[Series]:
    matchers = selector.matchers.matchers
    if any(matcher.op != promql.MatchOp.Equal for matcher in matchers):
        raise NotImplementedError(str(selector))
    wanted = {(matcher.name, matcher.value) for matcher in matchers}
    return [each for each in series if each.name == selector.name and wanted <= each.labels]


def _binary(expression: Any, series: list[Series], at: float) -> Vector | float:
    left = evaluate(expression.lhs, series, at)
    right = evaluate(expression.rhs, series, at)
    name = str(expression.op)
    if name in _ARITHMETIC:
        compute = _ARITHMETIC[name]
        if isinstance(left, float) and isinstance(right, float):
            return compute(left, right)
        if isinstance(left, float) and isinstance(right, dict):
            return {labels: compute(left, value) for labels, value in right.items()}
    elif name in _COMPARISONS and isinstance(left, dict):
        kept = _COMPARISONS[name]
        if isinstance(right, float):
            return {labels: value for labels, value in left.items() if kept(value, right)}
        pairs = {
            labels: (value, right[labels]) for labels, value in left.items() if labels in right
        }
        return {labels: pair[0] for labels, pair in pairs.items() if kept(*pair)}
    raise NotImplementedError(str(expression))


def _aggregate(expression: Any, series: list[Series], at: float) -> Vector:
    modifier = expression.modifier
    if modifier is not None and modifier.type != promql.AggModifierType.By:
        raise NotImplementedError(str(expression))
    names = set(modifier.labels) if modifier is not None else set()
    aggregate = _AGGREGATES[str(expression.op)]
    groups: dict[Labels, list[float]] = {}
    found = evaluate(expression.expr, series, at)
    assert isinstance(found, dict)
    for labels, value in found.items():
        group = frozenset(label for label in labels if label[0] in names)
        groups.setdefault(group, []).append(value)
    return {group: float(aggregate(values)) for group, values in groups.items()}


def _call(expression: Any, series: list[Series], at: float) -> Vector:
    name = expression.func.name
    if name == "histogram_quantile":
        quantile, buckets = (evaluate(each, series, at) for each in expression.args)
        assert isinstance(quantile, float)
        assert isinstance(buckets, dict)
        return _quantile(quantile, buckets)
    if name not in ("rate", "increase"):
        raise NotImplementedError(name)
    [matrix] = expression.args
    over: float = matrix.range.total_seconds()
    result = {}
    for found in _selected(matrix.vector_selector, series):
        inside = [sample for sample in found.samples if at - over <= sample[0] <= at]
        if len(inside) > 1:
            # Extrapolated to the whole range; the series of the tests have no resets.
            slope = (inside[-1][1] - inside[0][1]) / (inside[-1][0] - inside[0][0])
            result[found.labels] = slope if name == "rate" else slope * over
    return result


def _quantile(quantile: float, buckets: Vector) -> Vector:
    groups: dict[Labels, list[tuple[float, float]]] = {}
    for labels, count in buckets.items():
        group = frozenset(label for label in labels if label[0] != "le")
        groups.setdefault(group, []).append((float(dict(labels)["le"]), count))
    result = {}
    for group, found in groups.items():
        bounds = sorted(found)
        rank = quantile * bounds[-1][1]
        lower, below = 0.0, 0.0
        for upper, count in bounds:
            if count >= rank and count > below:
                inside = lower + (upper - lower) * (rank - below) / (count - below)
                result[group] = lower if math.isinf(upper) else inside
                break
            lower, below = upper, count
    return result


def firing(
    rule: Mapping[str, Any], series: list[Series], at: float, interval: float
) -> set[Labels]:
    """Return the labels with which an alert fires at a time; it is evaluated in each interval."""
    parsed = promql.parse(rule["expr"])
    pending = seconds(rule["for"]) if "for" in rule else 0.0
    active: set[Labels] | None = None
    for moment in itertools.takewhile(
        lambda each: each >= at - pending, itertools.count(at, -interval)
    ):
        found = evaluate(parsed, series, moment)
        assert isinstance(found, dict)
        active = set(found) if active is None else active & set(found)
    return active or set()
