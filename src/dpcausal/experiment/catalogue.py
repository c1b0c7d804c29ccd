"""A catalogue: the metrics of an organisation in one file, which experiments use by name."""

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import tomli_w

from dpcausal.errors import DpcausalError, StudyError
from dpcausal.experiment.decision import Guardrail
from dpcausal.experiment.metric import Metric
from dpcausal.utils.documents import text_of, toml_of
from dpcausal.utils.other_names import Constructor
from dpcausal.utils.plain_text import check_plain_text
from dpcausal.utils.validation import build, check_format, check_keys, did_you_mean

VERSION = 1
"""The version of the file format."""

_NEEDED = ("description", "owner", "column")
_OPTIONAL = ("unit", "denominator", "covariate", "earlier", "lower_is_better", "margin")


@dataclass(frozen=True, kw_only=True)
class MetricCatalogue(metaclass=Constructor):
    """Metrics that many experiments share: defined once, reviewed as code, and used by name.

    An experiment records the digest of the catalogue that its metrics are from, so that two scorecards with one digest
    mean the same by a name. Bounds in a catalogue are public: from a policy or from an earlier year.

    Attributes:
        name: What to call it.
        metrics: Its metrics, each with a name, a description and an owner.
        margins: How much worse a metric may be as a guardrail, where its owner says so.

    Example:
        >>> from dpcausal import Binary, MetricCatalogue, Metric
        >>> column = Binary("bought_7d", missing=0)
        >>> bought = Metric(column, name="bought", description="bought within 7 days", owner="shop")
        >>> catalogue = MetricCatalogue(name="shop", metrics=[bought])
        >>> MetricCatalogue.from_toml(catalogue.to_toml()).digest == catalogue.digest
        True
        >>> catalogue.metric("bought").description
        'bought within 7 days'
    """

    _example = 'MetricCatalogue(name="shop", metrics=[Metric(…)])'

    name: str
    metrics: Sequence[Metric]
    margins: Mapping[str, Guardrail] = field(default_factory=dict)

    def __post_init__(self) -> None:
        metrics = tuple(self.metrics)
        if not isinstance(self.name, str) or not self.name.strip() or not metrics:
            raise StudyError(
                expected="a catalogue with a name and metrics",
                got=f"{self.name!r} with {len(metrics)} metrics",
                hint='write name = "shop", and a table [metrics.revenue] for each metric.',
            )
        check_plain_text("name of a catalogue", [self.name])
        names = [each.name for each in metrics]
        if len(set(names)) != len(names) or not all(
            (each.name and each.description and each.owner) for each in metrics
        ):
            raise StudyError(
                expected="metrics with different names, each with a description and an owner",
                got=", ".join(map(repr, names))[:200],
                hint="the description says what is measured, over which time; the owner answers questions about it.",
            )
        if weighted := [each.name for each in metrics if each.weight != 1]:
            raise StudyError(
                problem=f"Metrics of a catalogue have no weight, but {', '.join(weighted)} has one",
                hint="an experiment says how its metrics share a budget.",
            )
        for each in metrics:
            self._check_columns(each, metrics)
        if strange := set(self.margins) - set(names):
            raise StudyError(
                problem=f"The catalogue has margins of metrics that it does not have: {', '.join(sorted(strange))}",
                hint="correct the name.",
            )
        object.__setattr__(self, "metrics", metrics)

    @staticmethod
    def _check_columns(metric: Metric, metrics: Sequence[Metric]) -> None:
        """Raise unless all metrics declare a column alike, and it says what a missing value counts as."""
        for column in metric.in_table:
            for other in metrics:
                if any(each.name == column.name and each != column for each in other.in_table):
                    raise StudyError(
                        problem=f"The column {column.name!r} is declared in two ways, by {metric.name!r} and by "
                        f"{other.name!r}",
                        hint="a column has the same bounds in every metric; for another cap make a column of its own.",
                    )

    @property
    def digest(self) -> str:
        """What names this version: a digest of every definition, whatever comments or order a file has."""
        return sha256(json.dumps(self._document(), sort_keys=True, allow_nan=False).encode()).hexdigest()

    def metric(self, name: str, weight: float = 1.0) -> Metric:
        """Return a metric by its name.

        Args:
            weight: Its share of an experiment's budget, relative to the other metrics.
        """
        for each in self.metrics:
            if each.name == name:
                return replace(each, weight=weight)
        known = [each.name for each in self.metrics]
        raise StudyError(
            problem=f"The catalogue {self.name} has no metric {name!r}; it has {', '.join(known)}"[:400],
            hint=f"{did_you_mean(name, known)}add it to the catalogue, or declare it in the experiment with a column.",
        )

    def usable(self, columns: Collection[str]) -> tuple[str, ...]:
        """Return the names of the metrics whose columns a table has."""
        return tuple(each.name for each in self.metrics if set(each.names_in_table) <= set(columns))

    def _document(self) -> dict[str, Any]:
        metrics: dict[str, Any] = {}
        for each in self.metrics:
            words = each.to_dict()
            del words["name"]
            if margin := self.margins.get(each.name):
                words["margin"] = {"by": margin.margin} | ({"relative": True} if margin.relative else {})
            metrics[each.name] = words
        return {"version": VERSION, "name": self.name, "metrics": metrics}

    def to_toml(self) -> str:
        """Return the catalogue as a TOML document."""
        return tomli_w.dumps(self._document())

    @classmethod
    def from_toml(cls, text: str | Path) -> Self:
        """Read a catalogue from TOML text, or from the file at a `Path`.

        Raises:
            StudyError: If the text describes no catalogue. The message names the metric.
        """
        document = toml_of("a catalogue", text_of("a catalogue", text))
        check_format("a catalogue", document, VERSION, {})
        check_keys("catalogue", document, ("version", "name", "metrics"), ())
        if not isinstance(document["metrics"], Mapping):
            raise StudyError(
                expected="metrics as tables by name",
                got=type(document["metrics"]).__name__,
                hint="write [metrics.revenue] above each.",
            )
        metrics, margins = [], {}
        for name, words in document["metrics"].items():
            try:
                check_keys("metric", words, _NEEDED, _OPTIONAL)
                plain = {key: value for key, value in words.items() if key != "margin"}
                metrics.append(Metric.from_dict({"name": name} | plain))
                if "margin" in words:
                    check_keys("margin", words["margin"], ("by",), ("relative",))
                    margin = {"metric": name, "margin": words["margin"]["by"]}
                    relative = {"relative": words["margin"]["relative"]} if "relative" in words["margin"] else {}
                    margins[name] = build("margin", Guardrail, margin | relative)
            except DpcausalError as error:
                raise StudyError(problem=f"Metric {name!r}: {error.problem}", hint=error.hint) from None
        return cls(name=document["name"], metrics=metrics, margins=margins)


def metrics_of(documents: Sequence[Mapping[str, Any]], catalogue: MetricCatalogue | None) -> tuple[Metric, ...]:
    """Return the metrics of an experiment's file: declared in full, or used from a catalogue by name."""
    metrics = []
    for each in documents:
        if "use" not in each:
            metrics.append(Metric.from_dict(each))
            continue
        check_keys("metric", each, ("use",), ("weight",))
        if catalogue is None:
            raise StudyError(
                problem=f"The metric {each['use']!r} is of a catalogue, and none was given"[:300],
                hint="write Experiment.from_toml(text, catalogue), or --catalogue metrics.toml.",
            )
        metrics.append(catalogue.metric(each["use"], each.get("weight", 1.0)))
    return tuple(metrics)


def checked_digest(document: Mapping[str, Any], catalogue: MetricCatalogue | None) -> str:
    """Return the digest of the catalogue that an experiment's metrics are from; empty where they are from none.

    Raises:
        StudyError: If the experiment was written for another version of the catalogue.
    """
    recorded = document.get("catalogue", "")
    used = any("use" in each for each in document["metrics"])
    if catalogue is None or not used:
        return str(recorded)
    if recorded and recorded != catalogue.digest:
        raise StudyError(
            problem=f"The experiment records version {recorded[:12]} of the catalogue {catalogue.name}, which "
            "is now at "
            f"version {catalogue.digest[:12]}",
            hint=f'read what has changed in it; then write catalogue = "{catalogue.digest}" into the experiment, or '
            "take the earlier file. An experiment that has run costs again where a definition changed.",
        )
    return catalogue.digest
