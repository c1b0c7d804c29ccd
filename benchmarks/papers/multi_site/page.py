"""The tables of the documentation's page."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from fractions import Fraction

from benchmarks.papers.multi_site.results import (
    GLOBAL,
    MEANS,
    NAMES,
    RULES,
    SMOOTH,
    Row,
    best,
    mean_ratio,
    number,
    over_best,
    row,
    rows,
)
from benchmarks.papers.paper import Result

ENDS = (1 / 8, 1.0, 8.0)
NONE = "-"
OURS = ("minimum_variance", "inverse_variance", "sample_size", "largest", "median", "random_effects")


def tables(result: Result) -> dict[str, Iterable[str]]:
    """Return the tables of the page, by their places."""
    return {
        "rules by alpha": rules_by_alpha(result),
        "rules over the best": rules_over_best(result),
        "trials": trials(result),
        "matching": matching(result),
        "sensitivity": sensitivity(result),
        "one site": one_site(result),
        "regression": regression(result),
        "our rules": our_rules(result),
        "ours against printed": ours_against_printed(result),
    }


def rules_by_alpha(result: Result) -> Iterator[str]:
    """Return how often each of the paper's rules has the smallest error, by alpha."""
    alphas = result["alphas"]
    yield f"| sites and rules | rule | {' | '.join(str(Fraction(alpha)) for alpha in alphas)} | all |"
    yield "|---" * (len(alphas) + 3) + "|"
    chosen = [each for each in rows(result) if each.in_the_paper]
    for by, words in (("paper", "as printed"), ("ours", "ours")):
        winners = [[best(each, by, place) for each in chosen] for place in range(len(alphas))]
        for rule in RULES:
            counts = [sum(rule in each for each in at) for at in winners]
            yield f"| {words} | {NAMES[rule]} | {' | '.join(map(str, counts))} | {sum(counts)} |"
    cells = len(chosen)
    yield f"| cells | | {' | '.join([str(cells)] * len(alphas))} | {cells * len(alphas)} |"


def rules_over_best(result: Result) -> Iterator[str]:
    """Return each rule's error over that of the best rule: geometric mean, and at worst."""
    kinds: dict[str, tuple[str, Callable[[float], bool]]] = {
        "alpha below 1": ("below", lambda alpha: alpha < 1),
        "alpha 1": ("at", lambda alpha: alpha == 1),
        "alpha above 1": ("above", lambda alpha: alpha > 1),
        "all": ("all", lambda _: True),
    }
    yield f"| sites and rules | alpha | {' | '.join(NAMES[rule] for rule in RULES)} |"
    yield "|---" * (len(RULES) + 2) + "|"
    chosen = [each for each in rows(result) if each.in_the_paper]
    for by, words in (("paper", "as printed"), ("floored", "the paper's sites, our rules"), ("ours", "ours")):
        rules = RULES if by != "floored" else RULES[:2]
        for name, (_, wanted) in kinds.items():
            found = [
                ratios
                for each in chosen
                for alpha, ratios in zip(result["alphas"], _against_printed(each, by, rules), strict=True)
                if wanted(alpha)
            ]
            cells = [_mean_and_worst([ratios[rule] for ratios in found]) if rule in rules else NONE for rule in RULES]
            if found:
                yield f"| {words} | {name} | {' | '.join(cells)} |"


def _against_printed(each: Row, by: str, rules: Sequence[str]) -> Iterator[dict[str, float]]:
    """Yield each rule's error over that of the best; rules with a floor are held against the printed ones."""
    if by != "floored":
        yield from over_best(each, by, rules)
        return
    for place in range(len(each.errors("paper", RULES[0]))):
        least = min(each.errors("paper", rule)[place] for rule in RULES)
        yield {rule: each.errors("floored", rule)[place] / least for rule in rules}


def _mean_and_worst(ratios: Sequence[float]) -> str:
    return f"{mean_ratio(ratios):.2f}, {max(ratios):.1f}" if ratios else NONE


def _at(result: Result, values: Sequence[float]) -> str:
    """Return a curve's values at the ends and the middle of the alphas."""
    return " ".join(number(values[place]) for place, alpha in enumerate(result["alphas"]) if alpha in ENDS)


def trials(result: Result) -> Iterator[str]:
    """Return figures 3 to 5 as numbers."""
    columns = ("as printed: MVAgg", "IVW", "AggAll", "AggLargest", "ours: MVAgg", "IVW", "ours, arms private: MVAgg")
    yield f"| table, sites | {' | '.join(columns)} |"
    yield "|---" * (len(columns) + 1) + "|"
    for each in rows(result, MEANS):
        private = row(result, each.table, each.split, "difference in means, record")
        cells = [_at(result, each.errors("paper", rule)) for rule in RULES]
        cells += [_at(result, each.errors("ours", rule)) for rule in RULES[:2]]
        cells.append(_at(result, private.errors("ours", "minimum_variance")) if private else NONE)
        yield f"| {_named(each)} | {' | '.join(cells)} |"


def matching(result: Result) -> Iterator[str]:
    """Return figures 8 to 11 as numbers, by MVAgg."""
    columns = ("GlobalDPMatching", "ours, global", "SmoothDPMatching", "ours, smooth", "stratification")
    yield f"| table, sites | {' | '.join((*columns, 'difference in means'))} |"
    yield "|---" * (len(columns) + 2) + "|"
    for each in rows(result, SMOOTH):
        other = row(result, each.table, each.split, GLOBAL)
        strata = row(result, each.table, each.split, "stratification, record")
        plain = row(result, each.table, each.split, "difference in means, record")
        if other and strata and plain:
            cells = [
                _at(result, one.errors(by, "minimum_variance"))
                for one, by in ((other, "paper"), (other, "ours"), (each, "paper"), (each, "ours"))
            ]
            cells += [_at(result, one.from_truth("minimum_variance")) for one in (strata, plain)]
            yield f"| {_named(each)} | {' | '.join(cells)} |"


def _named(each: Row) -> str:
    return f"{each.table} {each.split}" if ":" in each.split else f"{each.table} by {each.split}"


def sensitivity(result: Result) -> Iterator[str]:
    """Return figures 6 and 7 as numbers."""
    yield "| N or imbalance | as printed | ours | global |"
    yield "|---|---|---|---|"
    for line in result["sensitivities"]:
        at = f"N = {line['at']:,.0f}" if line["against"] == "units" else f"a = {line['at']:g}"
        yield f"| {at} | {' | '.join(number(line[kind]) for kind in ('printed', 'ours', 'global'))} |"


def one_site(result: Result) -> Iterator[str]:
    """Return the errors of estimators on one site's Synth."""
    found = result["one_site"]
    yield f"| RMSE, {found['tables']} tables | {' | '.join(f'epsilon {epsilon:g}' for epsilon in found['epsilons'])} |"
    yield "|---" * (len(found["epsilons"]) + 1) + "|"
    for name, each in found["by"].items():
        yield f"| {name} | {' | '.join(map(number, each['rmse']))} |"


def regression(result: Result) -> Iterator[str]:
    """Return every rule's error where sites do regression adjustment, some of them without an interval."""
    yield f"| table, sites | {' | '.join(rule.replace('_', ' ') for rule in OURS)} |"
    yield "|---" * (len(OURS) + 1) + "|"
    for each in rows(result, "regression adjustment, record"):
        yield f"| {_named(each)} | {' | '.join(_at(result, each.from_truth(rule)) for rule in OURS)} |"


def our_ratios(result: Result) -> dict[str, list[float]]:
    """Return each rule's error from the truth over that of the best rule, in all cells of our estimators."""
    names = dict.fromkeys(name for each in result["settings"] for name in each["curves"])
    found: dict[str, list[float]] = {rule: [] for rule in OURS}
    for each in rows(result, *names):
        for errors in zip(*(each.from_truth(rule) for rule in OURS), strict=True):
            for rule, error in zip(OURS, errors, strict=True):
                found[rule].append(error / min(errors))
    return found


def our_rules(result: Result) -> Iterator[str]:
    """Return how far each of this library's rules is behind the best of them."""
    yield "| rule | error over the best rule's, on average | at worst | cells above 1.25 times | above 2 times |"
    yield "|---|---|---|---|---|"
    for rule, ratios in our_ratios(result).items():
        above = [f"{sum(each > limit for each in ratios)} of {len(ratios)}" for limit in (1.25, 2)]
        mean, worst = mean_ratio(ratios), max(ratios)
        yield f"| {rule.replace('_', ' ')} | {mean:.2f} | {worst:.1f} | {above[0]} | {above[1]} |"


def ours_against_printed(result: Result) -> Iterator[str]:
    """Return by how much the printed errors are larger than ours at the same rule, epsilon and kind of guarantee."""
    yield "| estimator | rule | ours is smaller | printed over ours, on average | at least |"
    yield "|---|---|---|---|---|"
    words = {MEANS: "difference in means", GLOBAL: "GlobalDPMatching", SMOOTH: "SmoothDPMatching"}
    for estimator, named in words.items():
        for rule in RULES:
            chosen = [each for each in rows(result, estimator) if "paper" in each.by]
            pairs = [
                pair
                for each in chosen
                for pair in zip(each.errors("paper", rule), each.errors("ours", rule), strict=True)
            ]
            ratios = [printed / ours for printed, ours in pairs]
            if ratios:
                smaller = f"{sum(ratio > 1 for ratio in ratios)} of {len(ratios)}"
                yield f"| {named} | {NAMES[rule]} | {smaller} | {mean_ratio(ratios):.1f} | {min(ratios):.2f} |"


def text(result: Result) -> Iterator[str]:
    """Return the tables for a terminal."""
    for name, lines in tables(result).items():
        yield name
        yield from lines
        yield ""
