"""The paper's claims beside what was measured."""

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.papers.paper import Claim, Result
from benchmarks.papers.pp_ipw.page import number, share
from benchmarks.papers.pp_ipw.synthetic import EFFECTS, FIXED_EPSILON, FIXED_FITTED_ON

Line = dict[str, Any]

DOES_NOT, IN_PART = "does not hold", "holds in part"


def claims(result: Result) -> Sequence[Claim]:
    """Return the claims; those about the two tables only where they were made."""
    found = [*_about_bias(result), *_about_bounds(result), *_about_signs(result)]
    return [*found, *_about_tables(result)] if result["tables"] else found


def _at(result: Result, effect: float, epsilon: float, m: int) -> Line:
    lines: dict[tuple[float, float, int], Line] = {
        (each["effect"], each["epsilon"], each["fitted_on"]): each for each in result["synthetic"]
    }
    return lines[effect, epsilon, m]


def _about_bias(result: Result) -> Iterator[Claim]:
    at = _at(result, 2.0, FIXED_EPSILON, FIXED_FITTED_ON)
    yield Claim(
        "Lemma 3",
        "E[τ̂n] = τ̂ + g, with (-1)^t in the exponent of g",
        f"τ = 2, ε = 0.2, m = 1,000: simulated bias {at['bias']:+.4f}, g as printed {at['printed_bias']:+.4f}, with "
        f"the sign corrected {at['corrected_bias']:+.4f}; weights so corrected leave {at['bias_of_debiased']:+.4f}",
        DOES_NOT,
    )
    few, many = (_at(result, 2.0, FIXED_EPSILON, m) for m in (500, 2500))
    large = _at(result, 2.0, 0.99, FIXED_FITTED_ON)
    yield Claim(
        "Figure 1",
        "the bias falls as m and ε grow",
        f"τ = 2: {few['bias']:.3f} at m = 500 and {many['bias']:.4f} at m = 2,500 (ε = 0.2); {at['bias']:.3f} at "
        f"ε = 0.2 and {large['bias']:.4f} at 0.99 (m = 1,000)",
    )
    small = _at(result, 0.1, FIXED_EPSILON, FIXED_FITTED_ON)
    yield Claim(
        "Section 4",
        "increasing τ yields exponentially larger mean estimates",
        f"g is linear in the outcomes: mean τ̂n - τ̂ is {small['bias']:.4f} at τ = 0.1 and {at['bias']:.4f} at τ = 2, "
        f"{at['bias'] / small['bias']:.0f} times for a τ that is 20 times as large",
        DOES_NOT,
    )


def _about_bounds(result: Result) -> Iterator[Claim]:
    found = {each["where"]: each for each in result["counterexamples"]}
    says = {
        "Theorem 4": "P(τ̂n ≤ 0) ≤ exp(-2(τ̂ + g)²/η²) where abs(τ̂n) ≤ η",
        "Theorem 5": "P(τ̂εn ≤ 0 and τ̂n ≤ 0) ≤ the same times ½[1 + erf(…)]",
        "Corollary 7": "P(abs(τ̂n - τ̂) ≥ Δ) ≤ abs(g)/Δ",
        "Lemma 6": "noise moves τ̂n by at most η with a probability chosen in advance",
        "Theorem 8 (ATT)": "the same as Theorem 4 for the ATT",
        "Theorem 9 (ATC)": "the same as Theorem 4 for the ATC",
        "Theorem 10 (ATT)": "the same as Theorem 5 for the ATT",
        "Theorem 11 (ATC)": "the same as Theorem 5 for the ATC",
    }
    for where, words in says.items():
        each = found[where]
        if where == "Lemma 6":
            measured = "outcomes of opposite sign cancel in η: it is 0, and noise moves the estimate with probability 1"
        else:
            measured = f"bound {each['bound']:.2g}, exact probability {each['probability']:.2g}"
        yield Claim(where, words, f"counterexample: {measured}", DOES_NOT)


def _about_signs(result: Result) -> Iterator[Claim]:
    by = {
        effect: [_at(result, effect, epsilon, FIXED_FITTED_ON) for epsilon in (FIXED_EPSILON, 0.99)]
        for effect in EFFECTS
    }
    low, high = by[0.1]
    yield Claim(
        "Figures 2a, 2b",
        "wrong signs become rarer as ε and τ grow",
        f"τ̂n: {share(low['score_only_wrong'])} to {share(high['score_only_wrong'])} at τ = 0.1, "
        f"{share(by[2.0][0]['score_only_wrong'])} to {share(by[2.0][1]['score_only_wrong'])} at τ = 2; τ̂εn: "
        f"{share(low['fully_wrong'])} to {share(high['fully_wrong'])} and {share(by[2.0][0]['fully_wrong'])} to "
        f"{share(by[2.0][1]['fully_wrong'])} (ε = 0.2 to 0.99)",
    )
    least = min(each["bound"] for each in result["synthetic"] if each["effect"] == EFFECTS[0])
    yield Claim(
        "Section 4",
        "these results reflect the exponential bounds of Theorems 4 and 5",
        f"τ = 0.1: with the η of Lemma 6 the bound of Theorem 4 is between {least:.3f} and 1 on average at every ε and "
        f"m, where the shares are those above: it says nothing",
        DOES_NOT,
    )
    yield Claim(
        "Theorem 5",
        "bounding the chance that τ̂n and τ̂εn are both wrong characterises the released estimate",
        f"τ = 0.1, ε = 0.2: both are wrong in {share(low['both_wrong'])}, what is released in "
        f"{share(low['fully_wrong'])}",
        DOES_NOT,
    )
    few, many = (_at(result, 2.0, FIXED_EPSILON, m) for m in (500, 2500))
    yield Claim(
        "Figures 2c, 2d",
        "τ̂εn converges to τ̂ as m grows",
        f"τ = 2, ε = 0.2, m = 500 to 2,500: the mean τ̂n - τ̂ falls from {few['bias']:.3f} to {many['bias']:.4f}, the "
        f"standard error of the mean τ̂εn from {few['one_fully_se']:.3f} to {many['one_fully_se']:.3f}, where that of τ̂ "
        f"is {many['plain_se']:.3f}: noise for the n units does not go away with m",
        IN_PART,
    )


def _about_tables(result: Result) -> Iterator[Claim]:
    rows = {(each["table"], each["row"]): each for each in result["tables"]}
    ball, given = (rows["IHDP", f"score only, covariates {where}"] for where in ("in the unit ball", "as they are"))
    yield Claim(
        "Table 2 (IHDP)",
        "wrong signs of τ̂n from .515 (ε = 0.2) to .229 (0.99), under ‖x‖ ≤ 1",
        f"{share(ball['wrong'][0])} to {share(ball['wrong'][-1])} with covariates in the unit ball, "
        f"{share(given['wrong'][0])} to {share(given['wrong'][-1])} with covariates as they are, where the guarantee "
        f"does not hold; {given['runs']:,} runs on 10 realisations",
        DOES_NOT,
    )
    one, real = (rows["Lalonde", f"fully, {at}, covariates in the unit ball"] for at in ("C_y = 1", "real C_y"))
    yield Claim(
        "Table 3 (Lalonde)",
        "wrong signs of τ̂εn from .154 (ε = 0.2) to .034 (0.99)",
        f"{share(one['wrong'][0])} to {share(one['wrong'][-1])} with noise for outcomes of at most 1 dollar, "
        f"{share(real['wrong'][0])} to {share(real['wrong'][-1])} with noise for the outcomes in the table; "
        f"{real['runs']:,} subsamples",
        DOES_NOT,
    )
    plain = rows["Lalonde", "score only, covariates in the unit ball"]
    yield Claim(
        "Table 3 (Lalonde)",
        "wrong signs of τ̂n from .143 to .035, mean τ̂ 902",
        f"{share(plain['wrong'][0])} to {share(plain['wrong'][-1])}, mean τ̂ {number(plain['plain'])}",
    )
    corrected = {name: rows[name, "corrected"] for name in ("IHDP", "Lalonde")}
    yield Claim(
        "Section 5",
        "the private estimate agrees with the one without privacy with high probability",
        f"with public bounds the sign is wrong in {share(corrected['IHDP']['wrong'][0])} (ε = 0.2) and "
        f"{share(corrected['IHDP']['wrong'][-1])} (0.99) on IHDP, and in {share(corrected['Lalonde']['wrong'][0])} and "
        f"{share(corrected['Lalonde']['wrong'][-1])} on Lalonde",
        IN_PART,
    )
