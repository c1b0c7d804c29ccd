"""A whole analysis as one file: what is asked, of which columns, how, and at what price."""

import hashlib
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Literal, Self, get_args

import tomli_w

from dpcausal.diagnostics import Balance, Overlap
from dpcausal.effect import Effect, Estimator
from dpcausal.errors import StudyError
from dpcausal.estimators.average import (
    ESTIMATORS,
    DifferenceInMeans,
    DoublyRobust,
    InverseWeighting,
    suggest_estimator,
)
from dpcausal.estimators.plausibility import warned_of_width
from dpcausal.guarantee import Guarantee
from dpcausal.plain_text import is_plain_text
from dpcausal.planning.precision import half_width
from dpcausal.pooling import Rule
from dpcausal.queries import Cut, Query
from dpcausal.queries.strata import cuts_of
from dpcausal.rehearsal import Rehearsal
from dpcausal.release import RecordingSource
from dpcausal.schema import Schema
from dpcausal.study_template import VERSION, check_filled_in
from dpcausal.validation import check_format, check_keys, did_you_mean, is_number

_RENAMED = {"asker": "requester", "of": "covariates"}

DIAGNOSTICS: dict[str, type[Any]] = {"overlap": Overlap, "balance": Balance}
"""What a study can require to pass."""

Pooling = Literal["sums"] | Rule
"""How several sites become one effect: `sums` adds up their noisy answers and estimates once, as if all units were in
one table; every other way estimates at each site and pools the effects (see `dpcausal.pool`)."""

_LONGEST = 10_000

POOLINGS: tuple[str, ...] = ("sums", *get_args(Rule))


@dataclass(frozen=True, kw_only=True)
class Study:
    """A whole analysis: public, and fixed before anything is read. Sites approve it by the digest of its text.

    Attributes:
        name: What to call it.
        question: What it is to answer, in words.
        schema: What is public about the table, or of many sites' tables.
        estimator: How the effect is estimated.
        epsilon: What it costs in all, each site if there are many.
        delta: Likewise.
        design: `trial` where chance decided who was treated, otherwise `observational`.
        eligibility: Who is in the table, in words.
        time_zero: When follow-up begins, in words.
        confounders: Why each covariate that is adjusted for is, in words. Either none, or all that the estimator
            adjusts for and no other.
        expected: What is expected of the table, from the literature or a pilot, never from the table: some of
            `outcome_mean` (of a yes-or-no outcome, the risk), `outcome_sd`, `treated_share`, `compared_share`,
            `confounding` and `covariate_sd`, as for `Rehearsal`. Plans and the odds of a refused interval are made with
            them.
        bounds: Who chose the bounds and values in the schema (`by`), when (`on`), and where they come from (`source`).
        requires: What must not fail before the effect is asked for: `overlap` and `balance`, each with an epsilon of
            its own and the parameters of `dpcausal.diagnostics`. Balance is that after the estimator's adjustment, so
            it can be required of estimators that weight, of a plain difference, and of a trial. Of one table only.
        requester: Where many sites are asked, who asks: the name that requests are signed with.
        pooling: How several sites become one effect.
        epsilons: Sites that give another epsilon, by name.

    Example:
        >>> from dpcausal import DifferenceInMeans, Real, Schema, Treatment
        >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 10))
        >>> study = Study(
        ...     name="scores", question="Does training help?", schema=schema, estimator=DifferenceInMeans(),
        ...     epsilon=1.0, design="trial",
        ... )
        >>> Study.from_toml(study.to_toml()) == study
        True
    """

    name: str
    question: str
    schema: Schema
    estimator: Estimator
    epsilon: float
    delta: float = 0.0
    design: Literal["trial", "observational"] = "observational"
    eligibility: str = ""
    time_zero: str = ""
    confounders: Mapping[str, str] = field(default_factory=dict)
    bounds: Mapping[str, str] = field(default_factory=dict)
    expected: Mapping[str, float] = field(default_factory=dict)
    requires: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    requester: str = ""
    pooling: Pooling = "minimum_variance"
    epsilons: Mapping[str, float] = field(default_factory=dict)
    _read: str | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        self._check_words()
        parts = isinstance(self.schema, Schema), type(self.estimator) in ESTIMATORS.values(), self.pooling in POOLINGS
        if not all(parts):
            raise StudyError(
                expected=f"a Schema, an estimator out of {', '.join(ESTIMATORS)} and a pooling out of "
                f"{', '.join(POOLINGS)}",
                got=f"{type(self.schema).__name__}, {type(self.estimator).__name__} and {self.pooling!r}",
                hint='for instance pooling="minimum_variance".',
            )
        if not isinstance(self.epsilons, Mapping) or not all(isinstance(site, str) for site in self.epsilons):
            raise StudyError(
                expected="epsilons by the names of sites", got=repr(self.epsilons)[:100], hint="{'north': 0.5}"
            )
        self._check_expected()
        self.diagnostics()
        for text in _texts(self._plain()):
            if not is_plain_text(text):
                raise StudyError(
                    expected="texts of one line, without signs that steer a terminal",
                    got=repr(text)[:100],
                    hint="people decide about a study by what they see: it must be all that there is.",
                )
        self._check_confounders()
        for site in ("", *self.epsilons):
            self.guarantee(site)
        for diagnostic, epsilon in self.diagnostics().values():
            diagnostic.estimate(self.rehearsal(10_000), epsilon=epsilon)
        asked = [query.name for query, _ in self.questions()]
        if self.pooling == "sums" and (self.epsilons or not self._adds_up):
            raise StudyError(
                expected="for sums, one question whose answers add up over sites, at the same epsilon everywhere",
                got=f"{', '.join(asked)}" + (", and an epsilon of its own for some site" if self.epsilons else ""),
                hint="choose difference_in_means, stratification or regression_adjustment, or another pooling.",
            )

    def _check_words(self) -> None:
        for what in ("name", "question", "eligibility", "time_zero", "requester"):
            value = getattr(self, what)
            empty = what in ("name", "question") and not (isinstance(value, str) and value.strip())
            if not isinstance(value, str) or empty or len(value) > _LONGEST:
                raise StudyError(expected=f"a text as {what}", got=repr(value)[:100], hint="write it between quotes.")
        if self.design not in ("trial", "observational"):
            raise StudyError(
                expected="design: trial or observational",
                got=repr(self.design)[:100],
                hint="it is a trial only if chance decided who was treated.",
            )
        for what, known in (("confounders", self._covariates()), ("bounds", ("by", "on", "source"))):
            words = getattr(self, what)
            if (
                not isinstance(words, Mapping)
                or not set(words) <= set(known)
                or not all(isinstance(word, str) and len(word) <= _LONGEST for word in words.values())
            ):
                raise StudyError(
                    expected=f"{what}: texts for {', '.join(known) or 'covariates, of which the schema has none'}",
                    got=repr(words)[:100],
                    hint=f"{_strange(words, known)}write a table [{what}] with a line for each.",
                )

    def _check_confounders(self) -> None:
        if self.confounders and set(self.confounders) != set(self.adjusts_for):
            raise StudyError(
                expected=f"reasons in [confounders] for what the estimator adjusts for: "
                f"{', '.join(self.adjusts_for) or 'nothing'}",
                got=f"reasons for {', '.join(self.confounders)}",
                hint=f"{self.method} adjusts for what its own parameters list, and for nothing else: make the two "
                "lists one.",
            )

    def _check_expected(self) -> None:
        known = [part.name for part in fields(Rehearsal) if part.name not in ("schema", "n")]
        told = self.expected
        if not isinstance(told, Mapping) or not set(told) <= set(known) or not all(map(is_number, told.values())):
            raise StudyError(
                expected=f"expected: numbers for some of {', '.join(known)}",
                got=repr(told)[:100],
                hint=f"{_strange(told, known)}write a table [expected] with a line for each.",
            )
        self.rehearsal(10_000)

    def _covariates(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.schema.covariates) if isinstance(self.schema, Schema) else ()

    @property
    def _adds_up(self) -> bool:
        asked = self.questions()
        return len(asked) == 1 and asked[0][0].adds_up

    @property
    def method(self) -> str:
        """The name of the estimator."""
        return next(name for name, kind in ESTIMATORS.items() if kind is type(self.estimator))

    @property
    def adjusts_for(self) -> tuple[str, ...]:
        """The covariates that the estimator adjusts for."""
        by = getattr(self.estimator, "by", None)
        return tuple(getattr(self.estimator, "covariates", ()) if by is None else (cut.name for cut in cuts_of(by)))

    @property
    def text(self) -> str:
        """The study as the file that it was read from; one made in Python, as `to_toml` writes it."""
        return self.to_toml() if self._read is None else self._read

    @property
    def digest(self) -> str:
        """The SHA-256 of that text: what sites approve."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def guarantee(self, site: str = "") -> Guarantee:
        """What is promised to the units of a site about all that this study asks."""
        epsilon = self.epsilons.get(site, self.epsilon)
        return Guarantee(epsilon=epsilon, delta=self.delta, protects=self.schema.protects)

    def rehearsed(self, n: int, site: str = "") -> Effect:
        """The effect to expect from a site with so many units: its price, and how wide its interval will be."""
        return self.estimator.estimate(self.rehearsal(n), epsilon=self.guarantee(site).epsilon, delta=self.delta)

    def rehearsal(self, n: int, **expected: float | None) -> Rehearsal:
        """What is expected of a table with so many units; what is given here counts in place of the study's own."""
        given = {name: value for name, value in expected.items() if value is not None}
        trial = {"confounding": 0.0} if self.design == "trial" else {}
        return Rehearsal(self.schema, n, **{**trial, **self.expected, **given})

    def warned(self, effect: Effect) -> Effect:
        """Return an effect of this study with a warning where its interval is far from as wide as planned."""
        if effect.sites or effect.n < 2:
            return effect
        return warned_of_width(effect, half_width(self.rehearsed(effect.n)), informed="outcome_sd" in self.expected)

    def questions(self, n: int = 10_000, site: str = "") -> tuple[tuple[Query, Guarantee], ...]:
        """What the estimator asks of a table. Where a question depends on an earlier answer, that is a placeholder."""
        source = RecordingSource(self.rehearsal(n))
        self.estimator.estimate(source, epsilon=self.guarantee(site).epsilon, delta=self.delta)
        return tuple((release.query, release.guarantee) for release in source.releases)

    def diagnostics(self) -> dict[str, tuple[Overlap | Balance, float]]:
        """What must not fail before the effect is asked for, each with its price."""
        if not isinstance(self.requires, Mapping):
            raise StudyError(expected="a table [requires]", got=repr(self.requires)[:100], hint="or leave it out.")
        made = {}
        for name, told in self.requires.items():
            if name not in DIAGNOSTICS or not isinstance(told, Mapping) or not is_number(told.get("epsilon")):
                raise StudyError(
                    expected=f"requires: {' or '.join(DIAGNOSTICS)}, each with an epsilon of its own",
                    got=f"{name}: {told!r}"[:100],
                    hint='write for instance [requires.balance], and below it epsilon = 0.2 and covariates = ["age"].',
                )
            parameters = {key: value for key, value in told.items() if key != "epsilon"}
            diagnostic = _built(name, DIAGNOSTICS[name], parameters)
            if isinstance(diagnostic, Balance):
                diagnostic = self._after_adjustment(diagnostic, told)
            made[name] = diagnostic, float(told["epsilon"])
        return made

    def _after_adjustment(self, balance: Balance, told: Mapping[str, Any]) -> Balance:
        """The balance that the estimator leaves: weighted as it weights, or plain where it leaves arms as they are.

        A trial's arms may be compared as they are: that checks the randomisation.
        """
        weights: dict[str, Any] = {"weighted_by": ()}
        if isinstance(self.estimator, InverseWeighting | DoublyRobust):
            used = self.estimator
            weights = {"weighted_by": self.adjusts_for, "estimand": used.estimand, "clip": used.clip}
        elif not isinstance(self.estimator, DifferenceInMeans) and self.design != "trial":
            raise StudyError(
                expected="a required balance that can be tested after adjustment: with inverse_weighting, "
                "doubly_robust or difference_in_means, or of a trial",
                got=f"one with {self.method}, which does not make arms alike by weights",
                hint="require overlap instead: it tells whether there is anybody to compare with.",
            )
        made = replace(balance, **weights)
        other = [name for name in weights if name in told and getattr(balance, name) != getattr(made, name)]
        if other:
            raise StudyError(
                expected=f"a required balance as {self.method} adjusts: "
                f"{', '.join(f'{name} {getattr(made, name)}' for name in other)}",
                got=", ".join(f"{name} {getattr(balance, name)}" for name in other),
                hint="leave these out of [requires.balance]: they are taken from the estimator.",
            )
        return made

    def to_toml(self) -> str:
        """The study as a TOML document that a person can read and approve."""
        return tomli_w.dumps(self._plain())

    def _plain(self) -> dict[str, Any]:
        """The study as plain values, empty ones left out."""
        whole = {part.name: getattr(self, part.name) for part in fields(self) if part.init}
        parameters = {name: value for name, value in asdict(self.estimator).items() if value is not None}  # type: ignore[call-overload]
        whole["estimator"] = {"name": self.method, **parameters}
        whole["schema"] = self.schema.to_dict()
        tables = ("confounders", "bounds", "expected", "epsilons", "requires", "estimator", "schema")
        simple = {name: value for name, value in whole.items() if name not in tables and value != ""}
        return {"version": VERSION} | simple | {name: dict(whole[name]) for name in tables if whole[name]}

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """The study that a TOML text describes.

        Raises:
            DpcausalError: If it describes none.
        """
        check_filled_in(text)
        try:
            document = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise StudyError(
                expected="a TOML document", got=f"text that is not TOML ({error})", hint="check the line it names."
            ) from None
        check_format("a study", document, VERSION, _RENAMED)
        del document["version"]
        needed = ("name", "question", "epsilon", "estimator", "schema")
        optional = tuple(part.name for part in fields(cls) if part.init and part.name not in needed)
        check_keys("study", document, needed, optional)
        estimator = _estimator(document["estimator"])
        study = cls(**document | {"schema": Schema.from_dict(document["schema"]), "estimator": estimator})
        object.__setattr__(study, "_read", text)
        return study


def _estimator(document: object) -> Any:  # noqa: ANN401 (one of those above)
    if not isinstance(document, dict) or document.get("name") not in ESTIMATORS:
        raise StudyError(
            expected=f"an [estimator] with a name out of {', '.join(ESTIMATORS)}",
            got=repr(document)[:100],
            hint=(suggest_estimator(document.get("name")) if isinstance(document, dict) else "")
            + 'write for instance [estimator] and below it name = "difference_in_means".',
        )
    parameters = {name: value for name, value in document.items() if name != "name"}
    return _built(document["name"], ESTIMATORS[document["name"]], parameters)


def _built(name: str, kind: type[Any], document: Mapping[str, Any]) -> Any:  # noqa: ANN401 (one of that kind)
    """An estimator or a diagnostic from its parameters."""
    parameters = {key: _parameter(value) for key, value in document.items()}
    known = [part.name for part in fields(kind)]
    try:
        return kind(**parameters)
    except TypeError:
        raise StudyError(
            expected=f"parameters of {name} out of {', '.join(known)}",
            got=", ".join(sorted(parameters)) or "none",
            hint=f"{'of is now covariates; ' if 'of' in parameters else ''}its documentation says which it needs.",
        ) from None


def _strange(words: object, known: Sequence[str]) -> str:
    """Which name in a table is not among those known, and which may have been meant."""
    strange = next((name for name in words if name not in known), None) if isinstance(words, Mapping) else None
    return "" if strange is None else f"{strange!r} is none of these; {did_you_mean(strange, known)}"


def _parameter(value: object) -> object:
    """A parameter as a dataclass holds it: cuts as cuts, lists as tuples."""
    if isinstance(value, list):
        return tuple(map(_parameter, value))
    if isinstance(value, dict):
        check_keys("cut", value, ("name",), ("edges",))
        return Cut(**value)
    return value


def _texts(document: object) -> Iterator[str]:
    """Every text in plain values."""
    if isinstance(document, str):
        yield document
    elif isinstance(document, Mapping):
        for name, value in document.items():
            yield from (*_texts(name), *_texts(value))
    elif isinstance(document, list | tuple):
        for value in document:
            yield from _texts(value)
