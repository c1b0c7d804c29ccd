"""The section on reporting guidelines: which section of the report addresses which item.

CONSORT is for trials, STROBE and TARGET are for observational studies. Their items are cited by number: CONSORT 2025
(Hopewell and others 2025), STROBE (von Elm and others 2007), TARGET (Cashin and others 2025). NIST SP 800-226 has no
numbered items and is cited by topic.
"""

from dpcausal.diagnostics import BalanceTable
from dpcausal.report.section import ReportInputs, Section, Table

Topics = tuple[tuple[str, str], ...]

CONSORT: Topics = (
    ("1b, structured summary", "summary"),
    ("7, objectives", "question"),
    ("9, trial design", "question"),
    ("12a, eligibility criteria for participants", "question"),
    ("13, intervention and comparator", "question"),
    ("14, outcomes", "question inputs"),
    ("16a, sample size (as planned precision)", "result"),
    ("21a, statistical methods", "methods inputs"),
    ("21c, missing data", "inputs"),
    ("25, baseline data", "characteristics"),
    ("26, numbers analysed, outcomes and estimation", "result"),
    ("30, limitations (of the privacy guarantee)", "limitations"),
    (
        (
            "all other items, such as registration (2), funding (5), harms (15 and 27), randomisation (17 to 19), "
            "blinding (20) and participant flow (22)"
        ),
        "",
    ),
)
STROBE: Topics = (
    ("1b and 18, summary and key results", "summary"),
    ("3, objectives", "question"),
    ("4, study design", "question"),
    ("6a, eligibility criteria", "question"),
    ("7, outcomes, exposures, potential confounders", "question inputs"),
    ("9, efforts to address bias", "question diagnostics confounding"),
    ("11 and 16b, quantitative variables and category boundaries", "inputs"),
    ("12a, statistical methods, control of confounding", "methods question"),
    ("12c, missing data", "inputs"),
    ("12e and 17, sensitivity and other analyses", "confounding diagnostics"),
    ("13a, numbers analysed", "result"),
    ("14a, characteristics of participants", "characteristics"),
    ("15, outcome data", "result"),
    ("16a, main results (adjusted) and their precision", "result"),
    ("19, limitations", "result limitations"),
    (
        (
            "all other items, such as background (2), setting (5), data sources (8), study size (10), interpretation "
            "(20), generalisability (21) and funding (22)"
        ),
        "",
    ),
)
TARGET: Topics = (
    ("1c, summary of assumptions, methods and findings", "summary"),
    ("3, causal question", "question"),
    ("6a, 6b, 6d, 6e and 6f, eligibility, strategies, time zero, outcome, causal contrast", "question"),
    ("6g and 7g, identifying assumptions", "question result"),
    ("6h and 7h, data analysis plan, missing data", "methods inputs"),
    ("7b and 7e, strategies and outcome in the data", "inputs"),
    ("9, baseline data", "characteristics"),
    ("12, outcomes by strategy", "result"),
    ("13, effect estimates", "result"),
    ("14, additional analyses", "confounding diagnostics"),
    ("16, limitations", "result limitations"),
    ("19, sharing of study materials (study file, software, receipts)", "audit_trail provenance"),
    (
        (
            "all other items, such as rationale (4), data sources (5), assignment (6c and 7c), participant selection "
            "(8), follow-up (10), registration (18) and funding (20)"
        ),
        "",
    ),
)
NIST: Topics = (
    ("the guarantee, the privacy unit, and bounded neighbours", "privacy"),
    ("composition and the privacy budget", "privacy audit_trail"),
    ("utility, and bias from bounds and noise", "result inputs"),
    ("correctness of the algorithms: sensitivity, noise, floating point, random numbers", "provenance"),
    ("the trust model", "privacy"),
    ("security, access and side channels", "limitations audit_trail"),
    ("data collection and what happened before", "limitations inputs"),
)


def guidelines(report: ReportInputs, numbers: dict[str, int]) -> Section:
    """List, for each guideline that fits the design, the section that addresses each of its topics."""
    trial = report.study is not None and report.study.design == "trial"
    observational = report.study is not None and report.study.design == "observational"
    fitting: list[tuple[str, Topics]] = []
    fitting += [("CONSORT 2025, by item", CONSORT)] if trial else []
    fitting += [("STROBE, by item", STROBE), ("TARGET, by item", TARGET)] if observational else []
    fitting += [("NIST SP 800-226, by topic", NIST)]
    head = ("topic", "section")
    # Table 1 is a part of the diagnostics, where a balance has it.
    numbers = numbers | {"characteristics": numbers["diagnostics"]}
    described = any(isinstance(each, BalanceTable) and each.characteristics for each in report.diagnoses)
    absent = set() if described else {"characteristics"}
    absent |= {"diagnostics"} if not report.diagnoses else set()
    absent |= {"confounding"} if report.confounding is None else set()
    tables = tuple(
        Table(name, head, tuple((topic, _places(set(keys.split()) - absent, numbers)) for topic, keys in topics))
        for name, topics in fitting
    )
    paragraphs = ("Where this report addresses each guideline. It does not replace their checklists.",)
    return Section("guidelines", "Reporting guidelines", paragraphs=paragraphs, tables=tables)


def _places(keys: set[str], numbers: dict[str, int]) -> str:
    """Return the sections, in order; items that only empty sections would address are left to the authors."""
    if not keys:
        return "left to the authors"
    places = sorted(numbers[key] for key in keys)
    return ", ".join(dict.fromkeys(f"A{place}" if place else "page 1" for place in places))
