"""The paper's claims beside what was measured."""

from collections.abc import Iterator, Sequence
from typing import Any

from benchmarks.papers.paper import Claim, Result
from benchmarks.papers.pp_ipw.page import number, share
from benchmarks.papers.pp_ipw.synthetic import EFFECTS, FIXED_EPSILON, FIXED_FITTED_ON

Line = dict[str, Any]

DOES_NOT, IN_PART, UNKNOWN = "does not hold", "holds in part", "cannot be checked"


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
        "E[τ̂n] = τ̂ + g",
        f"holds with the g of its proof (Appendix A), not with that of Equation 8, which has (-1)^t in the exponent: "
        f"at τ = 2, ε = 0.2, m = 1,000 the simulated bias is {at['bias']:+.4f} ± {at['bias_se']:.4f}, the proof's g "
        f"{at['corrected_bias']:+.4f}, Equation 8's {at['printed_bias']:+.4f}",
        IN_PART,
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
        f"the bias grows exponentially with the variance of the noise, and linearly with the outcomes: mean τ̂n - τ̂ "
        f"is {small['bias']:.4f} at τ = 0.1 and {at['bias']:.4f} at τ = 2, {at['bias'] / small['bias']:.0f} times for "
        "a τ that is 20 times as large",
        IN_PART,
    )


def _about_bounds(result: Result) -> Iterator[Claim]:
    found = {each["where"]: each for each in result["counterexamples"]}
    own, trimmed = "holds for an estimate whose own mean is τ̂ + g ≥ 0", "does not hold with Lemma 3's g and trimming"
    says = {
        "Theorem 4": ("P(τ̂n ≤ 0) ≤ exp(-2(τ̂ + g)²/η²) where abs(τ̂n) ≤ η", f"{own}; {trimmed}"),
        "Theorem 5": ("P(τ̂εn ≤ 0 and τ̂n ≤ 0) ≤ the same times ½[1 + erf(…)]", f"{own}, with η in erf; {trimmed}"),
        "Corollary 7": ("P(abs(τ̂n - τ̂) ≥ Δ) ≤ abs(g)/Δ", ""),
        "Lemma 6": ("noise moves τ̂n by at most η with a probability chosen in advance", "holds for outcomes ≥ 0"),
        "Theorem 8 (ATT)": ("the same as Theorem 4 for the ATT", f"{own}; not where τ̂ + g < 0"),
        "Theorem 9 (ATC)": ("the same as Theorem 4 for the ATC", f"{own}; {trimmed}"),
        "Theorem 10 (ATT)": ("the same as Theorem 5 for the ATT", f"{own}, with η in erf; not where τ̂ + g < 0"),
        "Theorem 11 (ATC)": ("the same as Theorem 5 for the ATC", f"{own}, with η in erf; {trimmed}"),
    }
    for where, (words, holds) in says.items():
        each = found[where]
        if where == "Lemma 6":
            measured = "outcomes of opposite sign cancel in η: it is 0, and noise moves the estimate with probability 1"
        else:
            measured = f"bound {each['bound']:.2g}, exact probability {each['probability']:.2g}"
        start = f"{holds}. Counterexample" if holds else "counterexample"
        yield Claim(where, words, f"{start}: {measured}", IN_PART if holds else DOES_NOT)


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
        f"shares fall with ε and τ, as the bounds do; but at τ = 0.1 the bound of Theorem 4, with the η of Lemma 6, is "
        f"between {least:.3f} and 1 on average at every ε and m, so it does not explain the shares above",
        IN_PART,
    )
    yield Claim(
        "Theorem 5",
        "a full characterisation of the private estimate",
        f"of both estimates being wrong, not of the released one: at τ = 0.1, ε = 0.2 these are "
        f"{share(low['both_wrong'])} and {share(low['fully_wrong'])}. The remark that follows says that others may be "
        "of more interest",
        IN_PART,
    )
    few, many = (_at(result, 2.0, FIXED_EPSILON, m) for m in (500, 2500))
    yield Claim(
        "Figures 2c, 2d",
        "τ̂εn converges to τ̂ as m grows",
        f"its mean does: τ = 2, ε = 0.2, m = 500 to 2,500: the mean τ̂n - τ̂ falls from {few['bias']:.3f} to "
        f"{many['bias']:.4f}. A single τ̂εn keeps the noise for the n units: the standard error of its mean falls from "
        f"{few['one_fully_se']:.3f} to {many['one_fully_se']:.3f}, where that of τ̂ is {many['plain_se']:.3f}",
    )


def _about_tables(result: Result) -> Iterator[Claim]:
    rows = {(each["table"], each["row"]): each for each in result["tables"]}
    ball, given = (rows["IHDP", f"score only, covariates {where}"] for where in ("in the unit ball", "as they are"))
    yield Claim(
        "Table 2 (IHDP)",
        "wrong signs of τ̂n from .515 (ε = 0.2) to .229 (0.99), under ‖x‖ ≤ 1",
        f"{share(ball['wrong'][0])} to {share(ball['wrong'][-1])} with covariates in the unit ball, "
        f"{share(given['wrong'][0])} to {share(given['wrong'][-1])} with covariates as they are, where the guarantee "
        f"does not hold; but these are {given['runs']:,} runs on 10 of 1,000 realisations, and the paper's test sets "
        "are not public",
        UNKNOWN,
    )
    one, real = (rows["Lalonde", f"fully, {at}, covariates in the unit ball"] for at in ("C_y = 1", "real C_y"))
    yield Claim(
        "Table 3 (Lalonde)",
        "wrong signs of τ̂εn from .154 (ε = 0.2) to .034 (0.99)",
        f"{share(one['wrong'][0])} to {share(one['wrong'][-1])} with noise for outcomes of at most 1 dollar, "
        f"{share(real['wrong'][0])} to {share(real['wrong'][-1])} with noise for the outcomes in the table; "
        f"{real['runs']:,} subsamples. The paper does not say what C_y is",
        IN_PART,
    )
    plain = rows["Lalonde", "score only, covariates in the unit ball"]
    yield Claim(
        "Table 3 (Lalonde)",
        "wrong signs of τ̂n from .143 to .035, mean τ̂ 902",
        f"{share(plain['wrong'][0])} to {share(plain['wrong'][-1])}, mean τ̂ {number(plain['plain'])}",
    )
    at = {name: rows[name, "fully, real C_y, covariates in the unit ball"]["wrong"] for name in ("IHDP", "Lalonde")}
    public = {name: rows[name, "corrected"]["wrong"] for name in at}
    yield Claim(
        "Section 5",
        "the private estimate agrees with the one without privacy with high probability",
        "its sign is wrong, at ε = 0.2 and 0.99 and with C_y of the sample, in "
        + " and in ".join(f"{share(wrong[0])} and {share(wrong[-1])} on {name}" for name, wrong in at.items())
        + "; with public bounds in "
        + " and in ".join(f"{share(wrong[0])} and {share(wrong[-1])}" for wrong in public.values()),
        IN_PART,
    )
