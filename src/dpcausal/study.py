"""Studies: a whole analysis as one file, with its question, schema, estimator and price."""

import math
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, Self, get_args

import tomli_w

from dpcausal.calibration import calibrate, share_of
from dpcausal.diagnostics import Balance, Diagnosis, Overlap
from dpcausal.effect import Effect, Estimator
from dpcausal.errors import StudyError
from dpcausal.estimators.average import (
    ESTIMATORS,
    Stratification,
    Winsorised,
)
from dpcausal.estimators.plausibility import warned_of_width
from dpcausal.expectations import Expectations
from dpcausal.guarantee import Guarantee
from dpcausal.hash_chain import digest_of_text
from dpcausal.plain_text import is_plain_text
from dpcausal.planning.precision import half_width
from dpcausal.pooling import Automatic, Rule, describe_pooling
from dpcausal.prepared import Prepared
from dpcausal.queries import Query
from dpcausal.queries.cuts import cuts_of
from dpcausal.rehearsal import Rehearsal
from dpcausal.rehearsal.pricing import MeteredSource
from dpcausal.schema import Schema
from dpcausal.secure_settings import SecureSettings, secure_settings
from dpcausal.source import AdditiveSource, RecordingSource, Source
from dpcausal.study_diagnostics import read_diagnostics
from dpcausal.study_file import (
    method_name,
    plain_estimator,
    read_estimator,
    texts_in,
    unknown_key,
)
from dpcausal.study_template import VERSION, check_filled_in
from dpcausal.validation import check_format, check_keys, is_number

_RENAMED = {"asker": "requester", "of": "covariates", "values of a treatment": "arms"}

Pooling = Literal["sums"] | Automatic | Rule
"""`sums` adds up noisy answers as if all units were in one table; other rules pool sites' effects (`dpcausal.pool`)."""

_LONGEST = 10_000
POOLINGS: tuple[str, ...] = ("sums", "automatic", *get_args(Rule))


@dataclass(frozen=True, kw_only=True)
class Study:
    """A whole analysis: public, and fixed before anything is read. Sites approve it by the digest of its text.

    Attributes:
        name: What to call it.
        question: The question it answers, in words.
        schema: What is public about the table, or about every site's table.
        estimator: The estimator of the effect.
        epsilon: The total epsilon of the estimator, for each site if there are many.
        delta: The total delta.
        design: `trial` if treatment was randomised, otherwise `observational`.
        eligibility: Who is in the table, in words.
        time_zero: When follow-up begins, in words.
        confounders: For each covariate, why the estimator adjusts for it, in words; for all or for none.
        expected: Expectations from the literature or a pilot, never from the table: some of `outcome_mean` (of a binary
            outcome, the risk), `outcome_sd`, `treated_share`, `compared_share`, `confounding` and `covariate_sd`, as
            for `Rehearsal`. Plans use them.
        bounds: Who chose the bounds and values in the schema (`by`), when (`on`), and where they come from (`source`).
        requires: Diagnostics that must not fail before the effect is asked for: `overlap` and `balance`, each with an
            epsilon of its own and the parameters of `dpcausal.diagnostics`. Balance is that after the estimator's
            adjustment, so it needs an estimator that weights, a plain difference, or a trial. For one table only.
        requester: The name that signs the requests to sites, where there are many.
        pooling: How the answers of several sites become one effect; `automatic` depends on how many answer.
        epsilons: The epsilons of sites that differ from `epsilon`, by the site's name.
        aggregation: `secure` if only the sum over sites is ever opened, and each site adds a share of the noise.
        secure: For secure sums, the numbers of `honest` and `colluding` sites, as for `SecureSettings`.
        sites: For secure sums, the public key of each site that takes part, by name.

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
    pooling: Pooling = "automatic"
    epsilons: Mapping[str, float] = field(default_factory=dict)
    aggregation: Literal["plain", "secure"] = "plain"
    secure: Mapping[str, int] = field(default_factory=dict)
    sites: Mapping[str, str] = field(default_factory=dict)
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
        for text in texts_in(self._plain()):
            if not is_plain_text(text):
                raise StudyError(
                    expected="single-line text without control characters",
                    got=repr(text)[:100],
                    hint="people approve a study by what they see, so nothing in it may be hidden.",
                )
        self._check_confounders()
        for site in ("", *self.epsilons):
            self.guarantee(site)
        for diagnostic, epsilon in self.diagnostics().values():
            diagnostic.estimate(self.rehearsal(10_000), epsilon=epsilon)
        if (settings := self.secure_settings) is not None:
            self._check_secure(settings.honest)
        asked = [query.name for query, _ in self.questions()]
        if self.pooling == "sums" and (self.epsilons or not self._adds_up):
            raise StudyError(
                expected="for sums, one query whose answers add up over sites, with the same epsilon everywhere",
                got=f"{', '.join(asked)}" + (", and another epsilon for some sites" if self.epsilons else ""),
                hint="use difference_in_means, regression_adjustment or stratification with a cap, or another pooling.",
            )

    def _check_secure(self, honest: int) -> None:
        if self.pooling != "sums" or self.requires or self.advice_for_sites:
            raise StudyError(
                expected='for secure sums, pooling = "sums", no required diagnostics, and the same estimand everywhere',
                got=f"pooling {self.pooling}, {self.method}" + (", required diagnostics" if self.requires else ""),
                hint=self.advice_for_sites or 'write pooling = "sums" and leave [requires] out.',
            )
        asked = self.questions()
        noises = [calibrate(query, self.schema, guarantee) for query, guarantee in asked]
        public = all(scale is not None for noise in noises for scale in noise.scales)
        if asked != self.questions(1_000) or not public or any(query.prepaid for query, _ in asked):
            raise StudyError(
                expected="for secure sums, a query that is the same at every site, with noise of a public size",
                got=f"{self.method}, whose query depends on the number of units, on earlier looks or on private sizes",
                hint="use difference_in_means, regression_adjustment, survival or stratification with a cap.",
            )
        for noise in noises:
            share_of(noise, honest)  # raises where it cannot be shared: sites would refuse in their third round

    def _check_words(self) -> None:
        for what in ("name", "question", "eligibility", "time_zero", "requester"):
            value = getattr(self, what)
            empty = what in ("name", "question") and not (isinstance(value, str) and value.strip())
            if not isinstance(value, str) or empty or len(value) > _LONGEST:
                raise StudyError(expected=f"a text for {what}", got=repr(value)[:100], hint="write it between quotes.")
        if self.design not in ("trial", "observational"):
            raise StudyError(
                expected="design: trial or observational",
                got=repr(self.design)[:100],
                hint="it is a trial only if treatment was randomised.",
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
                    hint=f"{unknown_key(words, known)}write a table [{what}] with a line for each.",
                )

    def _check_confounders(self) -> None:
        if self.confounders and set(self.confounders) != set(self.adjusts_for):
            raise StudyError(
                expected=f"in [confounders], a reason for each covariate that the estimator adjusts for: "
                f"{', '.join(self.adjusts_for) or 'none'}",
                got=f"reasons for {', '.join(self.confounders)}",
                hint=f"{self.method} adjusts for the covariates in its own parameters only; make both lists the same.",
            )

    def _check_expected(self) -> None:
        known = [part.name for part in fields(Expectations) if part.name not in ("schema", "n")]
        given = self.expected
        if not isinstance(given, Mapping) or not set(given) <= set(known) or not all(map(is_number, given.values())):
            raise StudyError(
                expected=f"in [expected], numbers for some of {', '.join(known)}",
                got=repr(given)[:100],
                hint=f"{unknown_key(given, known)}write a table [expected] with a line for each.",
            )
        self.rehearsal(10_000)

    def _covariates(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.schema.covariates) if isinstance(self.schema, Schema) else ()

    @property
    def _adds_up(self) -> bool:
        return [query.adds_up for query, _ in self.questions()] == [True]

    @property
    def secure_settings(self) -> SecureSettings | None:
        """The terms of secure sums; None where aggregation is plain."""
        return secure_settings(self.aggregation, self.secure, self.sites)

    @property
    def method(self) -> str:
        """The name of the estimator."""
        return method_name(self.estimator)

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the estimator and of the one that it runs on winsorised outcomes, where it does."""
        return tuple(dict.fromkeys((self.method, method_name(self._adjusting))))

    @property
    def _adjusting(self) -> Estimator:
        """The estimator that adjusts: the one that runs on winsorised outcomes, where they are."""
        return self.estimator.estimator if isinstance(self.estimator, Winsorised) else self.estimator

    @property
    def pooling_in_words(self) -> str:
        """How the answers of several sites become one effect, for people to read."""
        return describe_pooling(self.pooling)

    @property
    def advice_for_sites(self) -> str:
        """What to change where the estimator would choose another estimand at each site; empty where it does not."""
        if isinstance(self.estimator, Winsorised):
            return "declare narrower public bounds of the outcome in the schema, and use the estimator itself."
        if isinstance(self.estimator, Stratification) and self.estimator.cap is None:
            return "give the estimator a cap: the odds of the larger arm where arms differ most, and 2 to 4 more."
        return str(getattr(self.estimator, "advice_for_sites", ""))

    @property
    def adjusts_for(self) -> tuple[str, ...]:
        """The covariates that the estimator adjusts for."""
        estimator = self._adjusting
        by = getattr(estimator, "by", None)
        return tuple(getattr(estimator, "covariates", ()) if not by else (cut.name for cut in cuts_of(by)))

    @property
    def identification(self) -> Literal["randomised", "by design", "adjusted", "unadjusted"]:
        """What makes the arms comparable: a trial, a design such as a cutoff, an adjustment, or nothing."""
        if self.design == "trial":
            return "randomised"
        if getattr(self._adjusting, "identified_by_design", False):
            return "by design"
        return "adjusted" if self.adjusts_for else "unadjusted"

    @property
    def text(self) -> str:
        """The text of the file that the study was read from; for one made in Python, what `to_toml` writes."""
        return self.to_toml() if self._read is None else self._read

    @property
    def digest(self) -> str:
        """The SHA-256 of that text, by which sites approve a study."""
        return digest_of_text(self.text)

    def guarantee(self, site: str = "") -> Guarantee:
        """Return the guarantee of the estimator's queries to the units of a site."""
        epsilon = self.epsilons.get(site, self.epsilon)
        return Guarantee(epsilon=epsilon, delta=self.delta, protects=self.schema.protects)

    def total_epsilon(self, site: str = "") -> float:
        """Return the epsilon of everything that this study asks of a site, required diagnostics included."""
        return math.fsum([self.guarantee(site).epsilon, *(epsilon for _, epsilon in self.diagnostics().values())])

    def prepare(self, vault: MeteredSource, site: str = "") -> Prepared:
        """Price this study on a vault; `run` of what is returned runs it.

        Args:
            vault: The vault to run it on.
            site: The site that this vault belongs to, where many sites are asked.

        Example:
            >>> import pyarrow as pa
            >>> from dpcausal import Budget, DifferenceInMeans, Real, Schema, Study, Treatment, Vault
            >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 10))
            >>> study = Study(name="scores", question="?", schema=schema, estimator=DifferenceInMeans(), epsilon=1.0)
            >>> table = pa.table({"treat": [0, 1] * 5_000, "score": [4.0, 6.0] * 5_000})
            >>> prepared = study.prepare(Vault(table, schema, ledger="sqlite://", budget=Budget(epsilon=1)))
            >>> print(prepared.price)
            epsilon 1, delta 0
            >>> abs(prepared.run().effect.estimate - 2) < 0.5
            True
        """
        from dpcausal.ledger import Spending  # noqa: PLC0415 (slow to load; a vault has loaded it already)

        price = Spending(self.total_epsilon(site), self.delta)
        return Prepared.of(vault, self._diagnose, lambda source: self.warned(self._estimate(source, site), site), price)

    def _diagnose(self, source: Source) -> dict[str, Diagnosis]:
        return {name: each.estimate(source, epsilon=epsilon) for name, (each, epsilon) in self.diagnostics().items()}

    def _estimate(self, source: Source, site: str) -> Effect:
        source = AdditiveSource(source) if site else source
        return self.estimator.estimate(source, epsilon=self.guarantee(site).epsilon, delta=self.delta)

    def rehearsed(self, n: int, site: str = "") -> Effect:
        """Return the effect to expect from a site with so many units: its price, and the width of its interval."""
        return self._estimate(self.rehearsal(n), site)

    def rehearsal(self, n: int, **expected: float | None) -> Rehearsal:
        """Return the rehearsal of a table with so many units; arguments override the study's own expectations.

        For secure sums it is that of all sites together, if all answer.
        """
        given = {name: value for name, value in expected.items() if value is not None}
        trial = {"confounding": 0.0} if self.design == "trial" else {}
        numbers: dict[str, Any] = {**trial, **self.expected, **given}
        if settings := self.secure_settings:  # all sites together
            numbers |= {"parts": len(settings.sites) / settings.honest, "sites": len(settings.sites)}
        return Rehearsal(self.schema, n, **numbers)

    def warned(self, effect: Effect, site: str = "") -> Effect:
        """Return an effect of this study, with a warning where its interval is much wider or narrower than planned."""
        if effect.sites or effect.n < 2:
            return effect
        return warned_of_width(
            effect, half_width(self.rehearsed(effect.n, site)), informed="outcome_sd" in self.expected
        )

    def questions(self, n: int = 10_000, site: str = "") -> tuple[tuple[Query, Guarantee], ...]:
        """Return the queries of the estimator. One that depends on an earlier answer holds a rehearsed answer."""
        source = RecordingSource(self.rehearsal(n))
        self._estimate(source, site)
        return tuple((release.query, release.guarantee) for release in source.releases)

    def diagnostics(self) -> dict[str, tuple[Overlap | Balance, float]]:
        """Return the required diagnostics, by name, each with its epsilon."""
        return read_diagnostics(self.requires, self._adjusting, self.method, self.adjusts_for, self.design)

    def to_toml(self) -> str:
        """Return the study as a TOML document that people can read and approve."""
        return tomli_w.dumps(self._plain())

    def _plain(self) -> dict[str, Any]:
        """Return the study as plain values, without empty ones."""
        whole = {part.name: getattr(self, part.name) for part in fields(self) if part.init}
        whole["estimator"] = plain_estimator(self.estimator)
        whole["schema"] = self.schema.to_dict()
        whole["aggregation"] = "" if self.aggregation == "plain" else self.aggregation
        tables = ("confounders", "bounds", "expected", "epsilons", "requires", "secure", "sites", "estimator", "schema")
        simple = {name: value for name, value in whole.items() if name not in tables and value != ""}
        return {"version": VERSION} | simple | {name: dict(whole[name]) for name in tables if whole[name]}

    @classmethod
    def from_toml(cls, text: str) -> Self:
        """Read a study from a TOML text.

        Raises:
            DpcausalError: If the text describes no study.
        """
        check_filled_in(text)
        try:
            document = tomllib.loads(text)
        except (tomllib.TOMLDecodeError, RecursionError) as error:
            raise StudyError(
                expected="a TOML document", got=f"text that is not TOML ({error})", hint="check the line that it names."
            ) from None
        check_format("a study", document, VERSION, _RENAMED)
        del document["version"]
        needed = ("name", "question", "epsilon", "estimator", "schema")
        optional = tuple(part.name for part in fields(cls) if part.init and part.name not in needed)
        check_keys("study", document, needed, optional)
        estimator = read_estimator(document["estimator"])
        study = cls(**document | {"schema": Schema.from_dict(document["schema"]), "estimator": estimator})
        object.__setattr__(study, "_read", text)
        return study
