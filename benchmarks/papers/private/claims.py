"""What the paper claims beside what was measured, with the numbers of a result."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.papers.paper import Claim
from benchmarks.papers.private.grid import Level, adaptive
from benchmarks.papers.private.methods import METHODS
from benchmarks.papers.private.tables import (
    best,
    cells,
    coefficient_settings,
    excess,
    limit_settings,
    names,
    short,
)

Result = Mapping[str, Any]
HOLDS, PARTLY, FAILS = "holds", "holds in part", "does not hold"


def claims(result: Result) -> Sequence[Claim]:
    """Return the claims that this result has numbers for."""
    return [claim for each in CLAIMS for claim in each(result)]


def _share(times: int, of: int) -> str:
    """Return the verdict on a claim about all cells: it holds in all, in most, or not."""
    return HOLDS if times == of else PARTLY if 2 * times >= of else FAILS


def _line(result: Result, name: str, key: str) -> dict[str, Any]:
    return next(each for each in result["methods"] if (each["data"], each["method"]) == (name, key))


def _means(result: Result, key: str) -> dict[tuple[str, float], float]:
    """Return the errors of a method by data set and epsilon."""
    return {
        (name, epsilon): mean
        for name in names(result)
        for epsilon, mean in zip(result["epsilons"], _line(result, name, key)["mean"], strict=True)
    }


def _theorem_1(result: Result) -> Iterator[Claim]:
    over = [line for line in result["theorem"] if line["heaviest"] > line["limit"] * (1 + 1e-9)]
    worst = max(result["theorem"], key=lambda line: line["heaviest"] / line["limit"])
    yield Claim(
        "Theorem 1",
        "the label level is ε-label DP with noise for (k + 1) B in each sum",
        f"as printed an outcome weighs more than k in {len(over)} of {len(result['theorem'])} sums, at worst "
        f"{worst['heaviest']:.3g} where k is {worst['limit']:g} ({worst['data']}): Equation 4 divides by the matches "
        "found. Here a match always counts 1 / N, and the audit finds no leak",
        FAILS if over else HOLDS,
    )


def _theorem_3(result: Result) -> Iterator[Claim]:
    lines = result["theorem"]
    within = [line for line in lines if line["noise"] ** 2 + line["matching"] ** 2 <= line["bound"] ** 2 * 1.001]
    bite = [line for line in lines if line["replaced"]]
    ratio = float(np.median([line["bound"] / line["simulated"] for line in bite]))
    model = float(np.median([line["bound_as_printed"] / line["simulated"] for line in bite]))
    yield Claim(
        "Theorem 3",
        "the squared error of a sum is at most 2((k + 1)B/ε)² + (RB/N)²",
        f"with R counted at the limit k N: in {len(within)} of {len(lines)} sums. It is loose: where limits bind, its "
        f"root is {ratio:.1f} times the error at the median, and {model:.1f} times with R as printed, which counts at "
        "k in place of k N",
        _share(len(within), len(lines)),
    )
    noise = [line for line in lines if line["noise"] >= line["matching"]]
    whole = [abs(line["simulated"] ** 2 / (line["noise"] ** 2 + line["matching"] ** 2) - 1) for line in lines]
    yield Claim(
        "Equation 6",
        "the squared error is noise plus squared matching error",
        f"simulated errors agree with the two parts to within {max(whole):.0%} of the square; noise is the larger part "
        f"in {len(noise)} of {len(lines)} sums",
        HOLDS,
    )


def _equation_9(result: Result) -> Iterator[Claim]:
    limits = [result["references"][name]["limits"] for name in names(result)]
    smaller = sum(a < b for each in limits for a, b in zip(each["printed"], each["corrected"], strict=True))
    total = sum(len(each["printed"]) for each in limits)
    yield Claim(
        "Equation 9",
        "k* minimises Equation 8",
        f"the minimum divides by √2 and not by 2; at the printed k* the model's error is "
        f"{100 * (1.5 / 2**0.5 - 1):.0f} % above its least. The printed limit is smaller in {smaller} of {total} cells",
        FAILS,
    )


_RIVALS = ("ipw_printed", "smooth", "dpci_printed")


def _figure_2(result: Result) -> Iterator[Claim]:
    means = {key: _means(result, key) for key in METHODS}
    at = list(means["sample"])
    for key, level in (("label_printed", "label"), ("sample_printed", "sample")):
        won = {rival: sum(means[key][each] < means[rival][each] for each in at) for rival in _RIVALS}
        all_of = sum(all(means[key][each] < means[rival][each] for rival in _RIVALS) for each in at)
        words = ", ".join(f"{METHODS[rival].label.split(',')[0]} in {count}" for rival, count in won.items())
        yield Claim(
            f"Fig. 2, {level} level",
            "outperforms all baselines on all data sets and budgets",
            f"as printed it is ahead of all three in {all_of} of {len(at)} cells: of {words}. (DPCI with its fitted "
            "models as if they were public; IPW-PP and DPCI are not private as printed)",
            _share(all_of, len(at)),
        )
    plain = sum(means["sample"][each] < means["difference"][each] for each in at)
    yield Claim(
        "§I",
        "the sample level is a practical solution where all data are sensitive",
        f"a private difference in means, which adjusts for nothing, is nearer to matching without privacy than the "
        f"sample level here in {len(at) - plain} of {len(at)} cells",
        _share(plain, len(at)),
    )
    low = [name for name in names(result) if _line(result, name, "label_printed")["mean"][0] < 0.2]
    lowest = result["epsilons"][0]
    yield Claim(
        "§I",
        "the label level has errors below 0.2 on several data sets at epsilon 0.5",
        f"at epsilon {lowest:g}, as printed: "
        + ", ".join(f"{name} {short(_line(result, name, 'label_printed')['mean'][0])}" for name in names(result))
        + "; here: "
        + ", ".join(short(_line(result, name, "label")["own"][0]) for name in names(result)),
        HOLDS if len(low) >= 2 else PARTLY if low else FAILS,
    )
    above = [each for key in ("label_printed", "sample_printed") for each in at if means[key][each] >= 1]
    yield Claim(
        "§IV-B",
        "the error of PrivATE is below 1 in all cases",
        f"as printed it is 1 or more in {len(above)} of {2 * len(at)} cells"
        + (f", the worst {short(max(means['sample_printed'].values()))}" if above else ""),
        _share(2 * len(at) - len(above), 2 * len(at)),
    )
    if {"Lalonde"} <= set(names(result)) and 3.0 in result["epsilons"]:
        found = {key: means[key]["Lalonde", 3.0] for key in ("label_printed", "sample_printed", *_RIVALS)}
        both = max(found["label_printed"], found["sample_printed"]) < 0.2
        others = ", ".join(f"{METHODS[key].label.split(',')[0]} {short(found[key])}" for key in _RIVALS)
        yield Claim(
            "Fig. 2, Lalonde",
            "at epsilon 3 most baselines are above 1 and PrivATE is below 0.2",
            f"as printed: label {short(found['label_printed'])}, sample {short(found['sample_printed'])}; {others}",
            HOLDS if both else PARTLY if found["label_printed"] < 0.2 else FAILS,
        )
    last = result["epsilons"][-1]
    ratios = {name: means["sample_printed"][name, last] / means["label_printed"][name, last] for name in names(result)}
    near = sum(ratio < 1.5 for ratio in ratios.values())
    yield Claim(
        "§IV-B",
        "at epsilon 4 both levels perform alike",
        "as printed the sample level's error is "
        + ", ".join(f"{ratio:.1f} times ({name})" for name, ratio in ratios.items())
        + " the label level's",
        _share(near, len(ratios)),
    )
    falls = {
        key: sum(_line(result, name, key)["mean"][-1] < _line(result, name, key)["mean"][0] for name in names(result))
        for key in METHODS
    }
    total = len(METHODS) * len(names(result))
    yield Claim(
        "§IV-B",
        "errors of all methods fall as epsilon rises",
        f"from the smallest to the largest epsilon in {sum(falls.values())} of {total} curves",
        _share(sum(falls.values()), total),
    )


def _limits(result: Result) -> Iterator[Claim]:
    shown: tuple[tuple[Level, str], ...] = (("label", "Figs 3, 8"), ("sample", "Figs 5, 10"))
    for level, where in shown:
        settings, own = limit_settings(level), adaptive(level, paper=True)
        parts, wins, of = [], 0, 0
        for by, words in (("printed", "as printed"), ("ours", "here")):
            found = cells(result, by, level, of=settings)
            won = best(found)
            first = min(settings, key=lambda each: excess(found, each))
            counts = ", ".join(f"{each.removeprefix('coefficient ')} {won[each]}" for each in settings[:-1])
            parts.append(
                f"{words} the adaptive limit is best in {won[own]} of {len(found)} cells ({counts}), on average "
                f"{excess(found, own):.2f} times the best one's error"
                + (", the least of the four" if first == own else f" ({first}: {excess(found, first):.2f})")
            )
            wins, of = wins + (first == own), of + 1
        yield Claim(
            where,
            f"the adaptive limit does best overall, {level} level",
            "; ".join(parts),
            HOLDS if wins == of else PARTLY if wins else FAILS,
        )
    found = cells(result, "printed", "label", of=limit_settings("label")[:-1])
    ends = {}
    for epsilon in (min(result["epsilons"]), max(result["epsilons"])):
        at = {key: each for key, each in found.items() if key[2] == epsilon}
        ends[epsilon] = best(at)
    low, high = ends.values()
    yield Claim(
        "Fig. 3",
        "a small limit is better at small epsilon, a large one at large epsilon",
        "; ".join(
            f"epsilon {epsilon:g}: limit 1 best in {won['limit 1']}, 10 in {won['limit 10']}, 50 in {won['limit 50']} "
            f"of {sum(won.values())}"
            for epsilon, won in ends.items()
        ),
        HOLDS if low["limit 1"] > high["limit 1"] and low["limit 50"] < high["limit 50"] else PARTLY,
    )


def _coefficients(result: Result) -> Iterator[Claim]:
    settings = coefficient_settings()
    shown: tuple[tuple[Level, str, str], ...] = (
        ("label", "Figs 4, 9", "c = 0.01"),
        ("sample", "Figs 6, 11", "h = 0.001"),
    )
    for level, where, words in shown:
        own, parts, firsts = adaptive(level, paper=True), [], []
        for by, which in (("printed", "as printed"), ("ours", "here")):
            found = cells(result, by, level, of=settings)
            over = {each: excess(found, each) for each in settings}
            first = min(over, key=lambda each: over[each])
            firsts.append(first)
            parts.append(
                f"{which} {own.removeprefix('coefficient ')} has {over[own]:.2f} times the best one's error on "
                f"average; least has {first.removeprefix('coefficient ')} ({over[first]:.2f})"
            )
        yield Claim(
            where,
            f"{words} does well everywhere",
            "; ".join(parts),
            HOLDS if set(firsts) == {own} else PARTLY if own in firsts else FAILS,
        )


def _neighbours(result: Result) -> Iterator[Claim]:
    found = cells(result, "printed", "label", of=[adaptive("label", paper=True)])
    by: dict[tuple[str, float], list[float]] = {}
    for (name, _, epsilon), each in found.items():
        by.setdefault((name, epsilon), []).extend(each.values())
    ratios = [max(each) / min(each) for each in by.values()]
    if max(map(len, by.values())) > 1:
        yield Claim(
            "Fig. 7",
            "PrivATE is robust to the number of neighbours",
            f"label level as printed: over N = 1, 3, 5 and 7 the largest error is {np.median(ratios):.1f} times the "
            f"smallest at the median of {len(ratios)} cells, {max(ratios):.1f} at worst",
            HOLDS if max(ratios) < 1.5 else PARTLY if np.median(ratios) < 2 else FAILS,
        )


def _splits(result: Result) -> Iterator[Claim]:
    lines = result["splits"]
    if not lines:
        return
    over, falls = [], 0
    pairs = list(dict.fromkeys((line["data"], line["epsilon"]) for line in lines))
    for pair in pairs:
        found = {line["split"]: line["mean"] for line in lines if (line["data"], line["epsilon"]) == pair}
        over.append(found["0.1:0.7:0.2"] / min(found.values()))
        arms = [float(split.split(":")[1]) for split in found]
        falls += (
            float(np.corrcoef(np.argsort(np.argsort(arms)), np.argsort(np.argsort(list(found.values()))))[0, 1]) < 0
        )
    yield Claim(
        "Fig. 12",
        "a small share for the arms gives a high error; 0.1 : 0.7 : 0.2 does well everywhere",
        f"errors fall with the arms' share in {falls} of {len(pairs)} panels; the paper's division has "
        f"{np.median(over):.1f} times the best one's error at the median, {max(over):.1f} at worst (best of 36, with "
        f"{min(line['repeats'] for line in lines)} repeats each, so partly by luck)",
        _share(falls, len(pairs)),
    )


def _synthetic(result: Result) -> Iterator[Claim]:
    lines = result["synthetic"]
    if not lines:
        return
    found = {(line["data"], line["epsilon"], line["method"]): line["mean"] for line in lines}
    at = list(dict.fromkeys((line["data"], line["epsilon"]) for line in lines))
    both = [each for each in at if {"AIM", "MST"} <= {key[2] for key in found if key[:2] == each}]
    behind = sum(
        found[each[0], each[1], method] > _means(result, "sample_printed")[each]
        for each in at
        for method in ("AIM", "MST")
        if (*each, method) in found
    )
    aim = sum(found[*each, "AIM"] < found[*each, "MST"] for each in both)
    yield Claim(
        "Fig. 2, synthetic data",
        "AIM is better than PrivSyn, and both are behind PrivATE at sample level",
        f"AIM is ahead of MST, which stands for PrivSyn, in {aim} of {len(both)} cells; the sample level as printed is "
        f"ahead of synthetic data in {behind} of {len(found)}. The tables were synthesised with four covariates, which "
        "is kind to synthetic data",
        _share(behind, len(found)),
    )


def _cost(result: Result) -> Iterator[Claim]:
    lines = result["cost"]
    own = [line for line in lines if line["method"] in {"label", "sample"}]
    if not own:
        return
    slow = max(own, key=lambda line: line["seconds"])
    bare = max((line for line in lines if line["method"].endswith("_printed")), key=lambda line: line["seconds"])
    yield Claim(
        "Tables IV, V",
        "PrivATE takes less than a second and the least memory",
        f"through a vault with its ledger at most {slow['seconds']:g} s of processor time ({slow['data']}), without "
        f"one at most {bare['seconds']:g} s; {min(line['megabytes'] for line in own)} to "
        f"{max(line['megabytes'] for line in own)} MB, nearly all of it the interpreter and its libraries",
        HOLDS if slow["seconds"] < 1 else PARTLY,
    )


CLAIMS: tuple[Callable[[Result], Iterator[Claim]], ...] = (
    _theorem_1,
    _theorem_3,
    _equation_9,
    _figure_2,
    _limits,
    _coefficients,
    _neighbours,
    _splits,
    _synthetic,
    _cost,
)
