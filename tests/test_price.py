"""One price: what a plan, a run, a review, a site and a console show is the same, and no ledger debits more."""

import itertools
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import reduce
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import pyarrow.parquet as pq
import pytest
from typer.testing import CliRunner

import dpcausal as dpc
from dpcausal.cli import app
from dpcausal.estimators import average
from dpcausal.federation.console.messages import example
from dpcausal.federation.console.site_folder import SiteFolder
from dpcausal.federation.protocol.messages import Request
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.policy import Policy
from dpcausal.federation.site.review import objections
from dpcausal.federation.site.site import Site
from dpcausal.guarantee import Event
from dpcausal.ledger import Ledger, Spending
from dpcausal.ledger.budget import Total
from dpcausal.planning import interval_refusals
from dpcausal.planning import plan as planning
from dpcausal.planning.ranking import rank_alone
from dpcausal.price import Price
from dpcausal.testing import standard_schema, synthetic_table
from tests.federation.conftest import Federation, message_in
from tests.support.site_folders import AS_OF, approve_study, make_site_folder
from tests.support.slow import marked

UNITS = 400
LISTED = replace(
    standard_schema(), covariates=[column for column in standard_schema().covariates if column.name != "age"]
)
COUNTED = replace(
    standard_schema(),
    covariates=[
        replace(column, missing="no") if isinstance(column, dpc.Binary) else column
        for column in standard_schema().covariates
    ],
)
OVERLAP = {"overlap": {"epsilon": 0.5, "covariates": ["age"]}}
BALANCE = {"balance": {"epsilon": 0.2, "covariates": ["age"], "most": 10.0}}
WARDS = {"name": "subgroup_effects", "by": ["ward"], "epsilon": 0.75}
OTHERS: dict[str, Any] = {
    "wards": WARDS,
    "curve": {
        "name": "r_learner",
        "covariates": ["age"],
        "basis": {"kind": "polynomial", "covariates": ["age"]},
        "propensity": 0.5,
        "outcome_models": False,
        "epsilon": 0.3,
        "delta": 1e-6,
    },
    "metrics": {"name": "experiment", "metrics": [{"column": "score"}, {"column": "smoker"}], "epsilon": 0.45},
}


@dataclass(frozen=True)
class Case:
    """A study, and where it is run.

    Attributes:
        name: What is special about it.
        parts: Its parts that differ from a difference in means for epsilon 1.
        rule: How the budgets of its table and of its sites add up.
        population: Whether its ledger is that of an experiment, with an allocated budget.
        saves: What is debited less than the price says; empty where epsilon and delta are debited whole.
    """

    name: str
    parts: Mapping[str, Any] = field(default_factory=dict)
    rule: str = "additive"
    population: bool = False
    saves: Literal["", "epsilon", "delta"] = ""

    def study(self, **others: Any) -> dpc.Study:
        usual: dict[str, Any] = {
            "name": re.sub(r"\W", "_", self.name),
            "question": "Does it help?",
            "requester": "anna",
            "schema": standard_schema(),
            "estimator": dpc.DifferenceInMeans(),
            "epsilon": 1.0,
            "pooling": "minimum_variance",
        }
        return dpc.Study(**usual | dict(self.parts) | others)

    def budget(self) -> dpc.Budget:
        return dpc.Budget(epsilon=20, delta=1e-3, rule=self.rule)  # type: ignore[arg-type]


def _of(estimator: object, **parts: Any) -> dict[str, Any]:
    return {"estimator": estimator, **parts}


MATCHED = standard_schema(undeclared=0)
ROBUST = dpc.DoublyRobust(covariates=["age"])
DISCONTINUITY = {"regression_discontinuity": dpc.RegressionDiscontinuity("age", 54, 18)}
CASES = [
    *(
        Case(name, _of(DISCONTINUITY.get(name) or average.estimator_for(name, LISTED), epsilon=0.7))
        for name in average.ESTIMATORS
        if "matching" not in name
    ),
    Case("exact_matching", _of(average.estimator_for("exact_matching", LISTED), schema=MATCHED)),
    marked(Case("propensity_matching", _of(average.estimator_for("propensity_matching", LISTED), schema=MATCHED))),
    Case(
        "delta", _of(dpc.RegressionAdjustment(covariates=["age"]), delta=1e-6), saves="delta"
    ),  # Laplace noise is narrower, and needs none
    Case("required overlap and balance", _of(ROBUST, requires=OVERLAP | BALANCE)),
    Case("tenths", {"epsilon": 0.1, "requires": {"balance": BALANCE["balance"] | {"epsilon": 0.2}}}),
    Case("protected outcomes", {"schema": standard_schema("outcome")}),
    Case("public arms", {"schema": standard_schema("record_within_arm")}),
    Case("another epsilon at a site", {"epsilons": {"north": 0.25}}),
    Case("some looks of a schedule", _of(dpc.ScheduledDifference("ward", 2))),
    Case("looks under zCDP", _of(dpc.ScheduledDifference("ward", 3), delta=1e-6), rule="zcdp"),
    Case("Laplace noise under zCDP", _of(ROBUST, requires=OVERLAP), rule="zcdp"),
    Case("Gaussian noise under zCDP", _of(dpc.RegressionAdjustment(covariates=["age"]), delta=1e-6), rule="zcdp"),
    Case("experiment of a population", _of(ROBUST, requires=BALANCE), population=True),
    Case("experiment of a population under zCDP", {"delta": 1e-6}, rule="zcdp", population=True),
]
SECURE = [
    Case("secure sum"),
    marked(Case("secure sum of all parts", {"requires": BALANCE, "secondary": OTHERS})),
    Case(
        "secure sum of all parts under zCDP",
        {"requires": BALANCE, "secondary": OTHERS, "delta": 1e-6},
        rule="zcdp",
        saves="delta",
    ),
    Case("the same analysis twice", {"secondary": {"wards": WARDS, "again": WARDS}}, saves="epsilon"),
    *(marked(Case(f"secondary {label}", {"secondary": {label: each}})) for label, each in OTHERS.items()),
]


@pytest.fixture(scope="module")
def quick_plans() -> Iterator[None]:
    """Plans without a ranking, curves and rehearsals with noise: none of them is a part of a price."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(
            planning, "rank_estimators", lambda *expected, **_: rank_alone(dpc.DifferenceInMeans(), *expected)
        )
        for module in (planning, interval_refusals):
            monkeypatch.setattr(module, "count_refusals", lambda *_: 0)
        monkeypatch.setattr(planning, "max_confounders", lambda *_: 0)
        yield


@pytest.fixture(scope="module")
def sites(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A site for each rule."""
    folder = tmp_path_factory.mktemp("sites")
    anna, table = Key.make("anna", folder / "anna.key"), synthetic_table(standard_schema(), UNITS)
    for rule in ("additive", "zcdp"):
        budget = {"epsilon": 100.0, "delta": 0.01, "rule": rule}
        requesters = {"anna": anna.public}
        make_site_folder(folder / rule, "north", table, standard_schema(), requesters, budget=budget)
    return {rule: folder / rule for rule in ("additive", "zcdp")}


AT_SITES = {
    *("another epsilon at a site", "delta", "some looks of a schedule", "looks under zCDP"),
    "Gaussian noise under zCDP",
}


def printed(text: str) -> str:
    """Return the price in a table of lines with labels."""
    (found,) = re.findall(r"^price +(.+)$", text, re.MULTILINE)
    return str(found)


def invoked(*words: object) -> str:
    done = CliRunner().invoke(app, [*map(str, words)])
    assert done.exit_code == 0, done.output
    return done.output


def planned(study: dpc.Study, folder: Path) -> str:
    (folder / "study.toml").write_text(study.to_toml(), encoding="utf-8")
    return printed(invoked("plan", folder / "study.toml", "--n", UNITS))


def shown(study: dpc.Study, folder: Path) -> set[str]:
    """Return the prices in a site's list, in its review, and at its console."""
    digest = Site(folder).receive(study.to_toml())
    listed = next(each for each in Site(folder).studies() if each.digest == digest)
    console = SiteFolder(folder)
    page = console.study(digest)
    assert page is not None
    grouped = dict(page.review)["price"]
    return {
        str(listed.price),
        printed(str(Site(folder).review(digest, open_table=False))),
        str(console.studies[digest].price),
        grouped[0],
    }


def spent_by(budget: dpc.Budget, events: Iterator[Event]) -> Spending:
    return budget.spent(reduce(Total.plus, events, Total()))


def check_debited(case: Case, ledger: Ledger, price: Price, spent: Spending) -> None:
    """What a ledger spent is what was promised in its own terms, and no more than the price as it adds up."""
    events = [event for entry in ledger.entries() if entry.kind == "grant" for event in entry.events]
    debited = Price.of(events)
    assert spent == spent_by(ledger.budget, iter(events)) == ledger.spent
    assert debited.is_within(epsilon=price.epsilon, delta=price.delta)
    for what in ("epsilon", "delta"):
        whole = getattr(debited, what) == pytest.approx(getattr(price, what), rel=1e-12)
        assert whole is not (case.saves == what), what


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_price_of_a_study_is_the_same_everywhere(case: Case, tmp_path: Path, sites: dict[str, Path]) -> None:
    study = case.study()
    price = study.price()
    assert planned(study, tmp_path) == str(price)
    pq.write_table(synthetic_table(study.schema, UNITS), tmp_path / "table.parquet")
    url = f"sqlite:///{tmp_path / 'ledger.db'}"
    if case.population:
        whole = dpc.Population.create(url, "people", case.budget(), protects="record")
        url = whole.allocate("one", replace(case.budget(), epsilon=10), as_of=AS_OF).address
    else:
        dpc.Ledger.create(url, case.budget(), as_of=AS_OF)
    vault = dpc.Vault(tmp_path / "table.parquet", study.schema, ledger=Ledger(url), as_of=AS_OF)
    prepared = study.prepare(vault)
    promised = spent_by(vault.ledger.budget, iter(prepared.due.values()))
    places = "--table", tmp_path / "table.parquet", "--ledger", url, "--as-of", AS_OF, "--out", tmp_path / "effect.json"
    assert printed(invoked("run", tmp_path / "study.toml", "--yes", *places)) == str(prepared.price) == str(price)
    check_debited(case, Ledger(url), price, promised)
    assert not study.prepare(vault).due
    assert shown(study, sites[case.rule]) == {str(study.price("north"))}


@pytest.mark.usefixtures("quick_plans")
@pytest.mark.parametrize("case", SECURE, ids=lambda case: case.name)
def test_price_of_a_secure_sum_is_the_same_everywhere(case: Case, tmp_path: Path) -> None:
    tables = {name: synthetic_table(standard_schema(), 60, seed) for seed, name in enumerate(("east", "west"))}
    federation = Federation(tmp_path, tables, standard_schema(), rule=case.rule)
    terms = {"aggregation": "secure", "secure": {"honest": 2, "colluding": 0}, "sites": federation.roster.keys}
    study = case.study(schema=COUNTED, pooling="sums", design="trial", **terms)
    for name in tables:
        approve_study(tmp_path / name, study)
    price = study.price()
    assert planned(study, tmp_path) == str(price)
    promised = spent_by(dpc.Budget(epsilon=1000, delta=0.1, rule=case.rule), _events(study))  # type: ignore[arg-type]
    assert shown(study, tmp_path / "east") == {str(price)}
    assert len(example(study, study.digest, Policy.read(tmp_path / "east"), None)[0]) == len(study.site_questions())
    federation.coordinator(study).result()
    for name in tables:
        check_debited(case, Site(tmp_path / name).ledger(), price, promised)


@pytest.mark.parametrize(
    "case", [each for each in CASES if getattr(each, "name", "") in AT_SITES], ids=lambda case: case.name
)
def test_site_debits_what_its_review_announced(case: Case, tmp_path: Path) -> None:
    federation = Federation(
        tmp_path, {"north": synthetic_table(standard_schema(), UNITS)}, standard_schema(), rule=case.rule
    )
    study, folder = case.study(), tmp_path / "north"
    approve_study(folder, study)
    announced = Site(folder).review(study.digest).consequences
    request = federation.anna.seal(Request(study=study.to_toml(), ask="releases").to_json())
    assert message_in(Site(folder).answer(request)).code == "answered"
    ledger = Site(folder).ledger()
    assert announced is not None
    assert announced.left == ledger.remaining
    additive = replace(case, saves="delta") if study.delta else case  # as at every site: Laplace noise is narrower
    check_debited(additive, ledger, study.price("north"), spent_by(ledger.budget, _events(study, "north")))
    after = Site(folder).review(study.digest).consequences
    assert after is not None
    if study.estimator is not ROBUST:  # whose second query depends on its first answer, and so counts as due
        assert after.left == ledger.remaining


def test_policy_allows_a_price_up_to_its_limit_exactly(sites: dict[str, Path]) -> None:
    study = CASES[-1].study(epsilon=0.1, delta=1e-6, requires={"balance": BALANCE["balance"] | {"epsilon": 0.2}})
    policy = replace(Policy.read(sites["additive"]), epsilon_per_study=0.3, delta_per_study=1e-6)
    diagnostics = ("it requires diagnostics, which need a single table or secure sums",)
    assert objections(policy, study) == diagnostics
    assert objections(replace(policy, epsilon_per_study=0.29), study) == (*diagnostics, "epsilon is above 0.29")
    assert objections(replace(policy, delta_per_study=9e-7), study) == (*diagnostics, "delta is above 9e-07")


ALL_PARTS = Case(
    "all parts",
    {
        "requires": BALANCE,
        "secondary": {"wards": WARDS},
        "delta": 1e-6,
        "estimator": dpc.RegressionAdjustment(covariates=["age"]),
        "aggregation": "secure",
        "secure": {"honest": 2, "colluding": 0},
        "sites": {"north": "0" * 64, "south": "1" * 64},
        "pooling": "sums",
        "design": "trial",
    },
    rule="zcdp",
)
ONE_SITE = Case("one site", {"epsilons": {"north": 2.0}})
LEFT_OUT = [(None, ALL_PARTS), (None, ONE_SITE), ("epsilons", ONE_SITE)]
LEFT_OUT += [(part, ALL_PARTS) for part in ("requires", "secondary", "delta")]


def lacking(part: str | None, whole: Callable[..., Price] = Price.of_study) -> Callable[..., Price]:
    """Return a mutant of the sum that leaves one part out."""
    return lambda document, site="": whole({name: document[name] for name in document if name != part}, site)


@pytest.mark.parametrize(("part", "case"), LEFT_OUT, ids=str)
def test_sum_that_leaves_a_part_out_is_caught(part: str | None, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Price, "of_study", lacking(part))
    study = case.study()
    vault = dpc.Vault(synthetic_table(study.schema, UNITS), study.schema, ledger="sqlite://", budget=case.budget())
    prepared = study.prepare(vault, "north" if study.epsilons else "")
    prepared.run()
    with pytest.raises(AssertionError) if part else nullcontext():
        check_debited(case, vault.ledger, prepared.price, vault.ledger.spent)


@pytest.mark.parametrize("part", ["requires", "secondary", "delta"])
def test_list_of_a_site_that_leaves_a_price_out_is_caught(
    part: str, sites: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    study, folder = ALL_PARTS.study(), sites["additive"]
    assert shown(study, folder) == {str(study.price("north"))}
    monkeypatch.setattr("dpcausal.federation.site.site.Price", SimpleNamespace(of_study=lacking(part)))
    assert len(shown(study, folder)) == 2


def _events(study: dpc.Study, site: str = "") -> Iterator[Event]:
    return itertools.chain.from_iterable(study.debits(AS_OF, UNITS, site).values())
