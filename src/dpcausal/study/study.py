"""Studies: a whole analysis as one file, with its question, schema, estimator and price."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, ClassVar, Literal, Self, get_args

import tomli_w

from dpcausal.diagnostics import Balance, Diagnosis, Overlap
from dpcausal.errors import StudyError
from dpcausal.estimators.average import ESTIMATORS
from dpcausal.estimators.average.formula_estimator import FormulaEstimator
from dpcausal.estimators.average.stratification import Stratification
from dpcausal.estimators.average.winsorised import Winsorised
from dpcausal.estimators.base import name_of, names_in, plain_estimator
from dpcausal.estimators.plausibility import warned_of_width
from dpcausal.guarantee import Event, Guarantee
from dpcausal.guarantee import Rule as BudgetRule
from dpcausal.planning.left_in import adjusts_for, confounders_of, expected_left_in, with_expected_left_in
from dpcausal.planning.precision import half_width
from dpcausal.pooling import Automatic, Rule, describe_pooling, pool
from dpcausal.price import Price
from dpcausal.queries.calibration import Asked
from dpcausal.rehearsal import Rehearsal
from dpcausal.rehearsal.pricing import MeteredSource, outstanding_cost
from dpcausal.release import debits_of
from dpcausal.results.effect import Effect, Estimator
from dpcausal.schema.schema import Schema
from dpcausal.source import AdditiveSource, RandomisedSource, RecordingSource, Source, SummedSource, guarantee_for
from dpcausal.study.diagnostics import read_diagnostics
from dpcausal.study.file import read_estimator, texts_in
from dpcausal.study.prepared import Prepared, StudyResult
from dpcausal.study.secondary import Secondary, SecondaryResult, read_secondary
from dpcausal.study.secure_settings import SecureSettings, secure_settings
from dpcausal.study.session import Ask, check_session, session_questions
from dpcausal.study.template import VERSION
from dpcausal.study.texts import check_confounders, check_expected, check_reasons, check_visible, check_words
from dpcausal.utils.blanks import check_filled_in
from dpcausal.utils.documents import text_of, toml_of
from dpcausal.utils.hash_chain import digest_of_text
from dpcausal.utils.other_names import OtherNames
from dpcausal.utils.plain_text import lines_in
from dpcausal.utils.validation import check_format, check_keys

_RENAMED = {"asker": "requester", "of": "covariates", "values of a treatment": "arms"}

Pooling = Literal["sums"] | Automatic | Rule
"""`sums` adds up noisy answers as if all units were in one table; other rules pool sites' effects (`dpcausal.pool`)."""

POOLINGS: tuple[str, ...] = ("sums", "automatic", *get_args(Rule))


@dataclass(frozen=True, kw_only=True)
class Study(OtherNames):
    """A whole analysis: public, and fixed before anything is read. Sites approve it by the digest of its text.

    Attributes:
        name: What to call it.
        question: The question it answers, in words.
        schema: What is public about the table, or about every site's table.
        epsilon: The total epsilon of the estimator, for each site if there are many.
        delta: The total delta.
        design: `trial` if treatment was randomised, otherwise `observational`.
        eligibility: Who is in the table, in words.
        time_zero: When follow-up begins, in words.
        confounders: For each covariate, why the estimator adjusts for it, in words; for all or for none.
        expected: Expectations from the literature or a pilot, never from the table: some of `outcome_mean` (of a binary
            outcome, the risk), `outcome_sd`, `treated_share`, `compared_share`, `confounding`, `covariate_sd`,
            `overlap` and `correlation`, as for `Rehearsal`. Plans use them.
        bounds: Who chose the bounds and values in the schema (`by`), when (`on`), and where they come from (`source`).
        requires: Diagnostics that must not fail before the effect is asked for: `overlap` and `balance`, each with an
            epsilon of its own and the parameters of `dpcausal.diagnostics`. Balance is that after the estimator's
            adjustment, so it needs an estimator that weights, a plain difference, or a trial. For one table, or for
            secure sums.
        secondary: For secure sums, secondary analyses by label: effect curves and experiments, each with the `name` of
            its estimator, an `epsilon` of its own and the estimator's parameters.
        requester: The name that signs the requests to sites, where there are many.
        pooling: How the answers of several sites become one effect; `automatic` depends on how many answer.
        epsilons: The epsilons of sites that differ from `epsilon`, by the site's name.
        aggregation: `secure` if only the sum over sites is ever opened, and each site adds a share of the noise.
        secure: For secure sums, the numbers of `honest` and `colluding` sites, as for `SecureSettings`.
        sites: For secure sums, the public key of each site that takes part, by name.
        table: The name of the table that is meant, at sites with several; empty for their first one.

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

    _example = 'Study(name="…", question="…", schema=schema, estimator=DifferenceInMeans(), epsilon=1.0)'
    _instead: ClassVar[Mapping[str, str]] = {
        "run estimate execute fit": "write study.prepare(vault).run(): prepare returns the price, and run spends it.",
        "report": "write Report.of(effect, study, vault.ledger, date=date.today()).",
        "plan power rehearse": "write study.rehearsed(n=5_000), with the number of units that you expect.",
    }

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
    secondary: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    requester: str = ""
    pooling: Pooling = "automatic"
    epsilons: Mapping[str, float] = field(default_factory=dict)
    aggregation: Literal["plain", "secure"] = "plain"
    secure: Mapping[str, int] = field(default_factory=dict)
    sites: Mapping[str, str] = field(default_factory=dict)
    table: str = ""
    _read: str | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        words = ("name", "question", "eligibility", "time_zero", "requester", "table")
        check_words({what: getattr(self, what) for what in words}, self.design)
        self._check_parts()
        check_reasons("confounders", self.confounders, self._covariates)
        check_reasons("bounds", self.bounds, ("by", "on", "source"))
        if not isinstance(self.epsilons, Mapping) or not all(isinstance(site, str) for site in self.epsilons):
            raise StudyError(
                expected="epsilons by the names of sites", got=repr(self.epsilons)[:100], hint="{'north': 0.5}"
            )
        check_expected(self.expected)
        self.diagnostics()
        self.secondary_analyses()
        check_visible(texts_in(self._plain()))
        check_confounders(self.confounders, self.adjusts_for, self.method)
        for site in ("", *self.epsilons):
            self.guarantee(site)
        if isinstance(self.estimator, FormulaEstimator):  # its weights are part of the study, and of its text
            object.__setattr__(self, "estimator", self.estimator.weighted(self.rehearsal(10_000), self.guarantee()))
        self._diagnose(self.rehearsal(10_000))
        if (settings := self.secure_settings) is not None:
            self._check_secure(settings.honest)
        elif self.secondary:
            raise StudyError(
                expected='secondary analyses with aggregation = "secure"',
                got=f"{', '.join(self.secondary)} in a study without it",
                hint="on one table, call their estimators with the vault.",
            )
        asked = [each.query.name for each in self.questions()]
        adds_up = settings or [each.query.adds_up for each in self.questions()] == [True]
        if self.pooling == "sums" and (self.epsilons or not adds_up):
            raise StudyError(
                problem="Sums need one query whose answers add up over sites, with the same epsilon everywhere, not "
                f"{', '.join(asked)}" + (", and another epsilon for some sites" if self.epsilons else ""),
                hint="use difference_in_means, regression_adjustment or stratification with a cap, or another pooling.",
            )

    def _check_parts(self) -> None:
        """Raise unless the schema, the estimator and the pooling are such."""
        if not isinstance(self.schema, Schema):
            raise StudyError(
                problem=f"The schema of a study must be a Schema, not a {type(self.schema).__name__}",
                hint="write Schema(treatment=Treatment(…), outcome=Real(…)).",
            )
        if type(self.estimator) not in ESTIMATORS.values():
            raise StudyError(
                problem="The estimator of a study must be one of those for average effects, not "
                f"{repr(self.estimator)[:100]}",
                hint='write for instance estimator=DifferenceInMeans(), or DoublyRobust(covariates=["age"]).',
            )
        if self.pooling not in POOLINGS:
            raise StudyError(
                problem=f"pooling must be one of {', '.join(POOLINGS)}, not {self.pooling!r}",
                hint='write for instance pooling="minimum_variance".',
            )

    def _check_secure(self, honest: int) -> None:
        if self.pooling != "sums" or self.advice_for_sites:
            raise StudyError(
                problem='Secure sums need pooling = "sums", and the same estimand everywhere, not pooling '
                f"{self.pooling}, {self.method}",
                hint=self.advice_for_sites or 'write pooling = "sums".',
            )
        check_session(self._session, self._asks(), self.rehearsal, self.schema, honest)

    @property
    def _covariates(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.schema.covariates)

    @property
    def secure_settings(self) -> SecureSettings | None:
        """The terms of secure sums; None where aggregation is plain."""
        return secure_settings(self.aggregation, self.secure, self.sites)

    @property
    def method(self) -> str:
        """The name of the estimator."""
        return name_of(type(self.estimator))

    @property
    def methods(self) -> tuple[str, ...]:
        """The names of the estimator and of the one that it runs on winsorised outcomes, where it does."""
        return tuple(dict.fromkeys((self.method, name_of(type(self._adjusting)))))

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
        if isinstance(self.estimator, Stratification):
            return self.estimator.advice_for_sites(self.schema)
        return str(getattr(self.estimator, "advice_for_sites", ""))

    @property
    def adjusts_for(self) -> tuple[str, ...]:
        """The covariates that the estimator adjusts for."""
        return adjusts_for(self.estimator)

    @property
    def unused_covariates(self) -> tuple[str, ...]:
        """The declared covariates that the estimator uses in no role."""
        return tuple(name for name in self._covariates if name not in names_in(self.estimator))

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
        return Guarantee(epsilon=self.epsilons.get(site, self.epsilon), delta=self.delta, protects=self.schema.protects)

    def price(self, site: str = "") -> Price:
        """Return the price of everything that this study asks of a site, or of one table, whatever is answered."""
        return Price.of_study(vars(self), site)

    def debits(
        self, as_of: str | None, n: int = 10_000, site: str = "", *, rule: BudgetRule = "additive"
    ) -> dict[str, list[Event]]:
        """Return what the ledger of one of many sites would debit, by request, if nothing was answered before.

        Args:
            rule: How its ledger adds up prices.
        """
        session = self.digest if self.secure_settings else ""
        return debits_of(self.site_questions(n, site), self.schema, as_of, rule=rule, session=session)

    def prepare(self, vault: MeteredSource, site: str = "") -> Prepared:
        """Price this study on a vault; `run` of what is returned runs it.

        Args:
            site: The site that this vault belongs to, where many sites are asked.

        Raises:
            StudyError: If the vault declares the table otherwise than the study.

        Example:
            >>> import pyarrow as pa
            >>> from dpcausal import Budget, DifferenceInMeans, Real, Schema, Treatment, Vault
            >>> schema = Schema(treatment=Treatment("treat"), outcome=Real("score", 0, 10))
            >>> study = Study(name="scores", question="?", schema=schema, estimator=DifferenceInMeans(), epsilon=1.0)
            >>> table = pa.table({"treat": [0, 1] * 5_000, "score": [4.0, 6.0] * 5_000})
            >>> prepared = study.prepare(Vault(table, schema, ledger="sqlite://", budget=Budget(epsilon=1)))
            >>> print(prepared.price)
            epsilon 1, delta 0
            >>> abs(prepared.run().effect.estimate - 2) < 0.5
            True
        """
        guarantee_for(vault, self.epsilon, self.delta)  # which says what to give in place of a table
        self._check_declared(vault.schema)

        def evaluate(source: Source) -> StudyResult:
            result = self.evaluate(source, site)
            return replace(result, effect=self.warned(result.effect, site)) if result.effect else result

        return Prepared(vault, evaluate, self.price(site), outstanding_cost(vault, *self._asks(site)))

    def _check_declared(self, schema: Schema) -> None:
        """Raise where a vault declares a part of the table otherwise: what was approved is the study's declaration."""
        parts = ("treatment", "outcome", "unit", "protects", "required")
        differing = [part for part in parts if getattr(schema, part) != getattr(self.schema, part)]
        differing += [column.name for column in self.schema.covariates if column not in schema.covariates]
        if differing:
            raise StudyError(
                expected="a vault that declares the table as the study does",
                got=f"one that differs in {', '.join(differing)}",
                hint="open the vault with the study's schema: Vault(table, study.schema, ledger=…).",
            )

    def seen(self, source: Source) -> Source:
        """Return a source as all of the study sees it: sites whose answers are added up see covariates alike.

        In a trial missing values of covariates hide no confounding.
        """
        seen = RandomisedSource(source) if self.design == "trial" else source
        return SummedSource(seen) if self.pooling == "sums" else seen

    def _diagnose(self, source: Source) -> dict[str, Diagnosis]:
        asked, seen = self.diagnostics().items(), self.seen(source)
        return {name: diagnostic.estimate(seen, epsilon=epsilon) for name, (diagnostic, epsilon) in asked}

    def _estimate(self, source: Source, site: str) -> Effect:
        source = self.seen(AdditiveSource(source) if site else source)
        return self.estimator.estimate(source, epsilon=self.guarantee(site).epsilon, delta=self.delta)

    def evaluate(self, source: Source, site: str = "") -> StudyResult:
        """Evaluate all of a study on a source: required diagnostics and, unless one fails, all estimates.

        Args:
            source: What answers the queries: a vault, or a coordinator of secure sums, which has all answers already.
            site: The site that this vault belongs to, where many sites are asked.
        """
        diagnoses = self._diagnose(recording := RecordingSource(source))
        if any(diagnosis.passes is False for diagnosis in diagnoses.values()):
            return StudyResult(None, diagnoses, tuple(recording.releases))
        effect, secondary = self._estimate(recording, site), self._analyse(recording)
        return StudyResult(effect, diagnoses, tuple(recording.releases), secondary)

    def rehearsed(self, n: int, site: str = "", *, sites: int = 1) -> Effect:
        """Return the effect to expect from a site with so many units: its price, and the width of its interval.

        Args:
            n: The number of units, of all sites together.
            site: The site that is asked, where many are.
            sites: How many sites' sums are added up, each with its own noise. Secure sums are always of all sites.
        """
        return self.with_left_in(self._estimate(self.rehearsal(n, parts=sites, sites=sites), site))

    def rehearsed_pool(self, sizes: Mapping[str, int]) -> Effect:
        """Return the pooled effect to expect from sites with so many units, with the weight of each.

        Raises:
            StudyError: If the answers of sites are added up: then no site has a weight.
        """
        if self.pooling == "sums":
            raise StudyError(
                expected="a study that pools the effects of sites",
                got='pooling = "sums", in which every unit counts alike',
                hint="plan it in Python, with the units of all sites together: study.rehearsed(3_000, sites=3).",
            )
        return pool({site: self.rehearsed(n, site) for site, n in sizes.items()}, self.pooling)

    def with_left_in(self, effect: Effect) -> Effect:
        """Return an effect whose interval allows for the confounding that the adjustment is expected to leave in."""
        rehearsal = self.rehearsal(effect.n)
        bound = expected_left_in(self.estimator, confounders_of(self.estimator, self.schema), rehearsal)
        return with_expected_left_in(effect, bound, rehearsal)

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
        """Return an effect of this study with what its plan says: the confounding left in, an unexpected width."""
        effect = self.with_left_in(effect) if effect.n > 1 else effect
        if effect.sites or effect.n < 2:
            return effect
        planned = half_width(self.rehearsed(effect.n, site))
        return warned_of_width(effect, planned, informed="outcome_sd" in self.expected)

    def questions(self, n: int = 10_000, site: str = "") -> tuple[Asked, ...]:
        """Return the queries of the estimator. One that depends on an earlier answer holds a rehearsed answer."""
        return session_questions([lambda source: self._estimate(source, site)], self.rehearsal(n))

    def site_questions(self, n: int = 10_000, site: str = "") -> tuple[Asked, ...]:
        """Return all queries that one of many sites is asked.

        With secure sums they include required diagnostics, which come first, and secondary analyses, which come last.
        Numbers are masked in this order.
        """
        return self.questions(n, site) if self.secure_settings is None else self._session

    @cached_property
    def _session(self) -> tuple[Asked, ...]:
        """The queries of secure sums, which no number of units changes."""
        return session_questions(self._asks(), self.rehearsal(10_000))

    def _asks(self, site: str = "") -> tuple[Ask, ...]:
        return self._diagnose, lambda source: self._estimate(source, site), self._analyse

    def _analyse(self, source: Source) -> dict[str, SecondaryResult]:
        return {label: each.estimate(self.seen(source)) for label, each in self.secondary_analyses().items()}

    def secondary_analyses(self) -> dict[str, Secondary]:
        """Return the secondary analyses, by label, each with its price."""
        return read_secondary(self.secondary)

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
        tables = (
            *("confounders", "bounds", "expected", "epsilons", "requires", "secure", "sites", "estimator"),
            *("secondary", "schema"),
        )
        simple = {name: value for name, value in whole.items() if name not in tables and value != ""}
        return {"version": VERSION} | simple | {name: dict(whole[name]) for name in tables if whole[name]}

    @classmethod
    def from_toml(cls, document: str | Path) -> Self:
        """Read a study from TOML text, or from the file at a `Path`.

        Raises:
            DpcausalError: If the text describes no study.
        """
        return cls._of_text(text_of("a study", document))

    @classmethod
    @lru_cache(maxsize=16)  # sites and coordinators read one text at each step, and to check it is to rehearse it
    def _of_text(cls, text: str) -> Self:
        if not text.strip():
            raise StudyError(problem="The study is empty", hint="save the file again, or ask for it again.")
        check_filled_in(text)
        check_visible(line.replace("\t", " ") for line in lines_in(text))  # comments are read as well
        read = toml_of("a study", text)
        check_format("a study", read, VERSION, _RENAMED)
        del read["version"]
        needed = ("name", "question", "epsilon", "estimator", "schema")
        optional = tuple(part.name for part in fields(cls) if part.init and part.name not in needed)
        check_keys("study", read, needed, optional)
        estimator = read_estimator(read["estimator"])
        study = cls(**read | {"schema": Schema.from_dict(read["schema"]), "estimator": estimator})
        object.__setattr__(study, "_read", text)
        return study
