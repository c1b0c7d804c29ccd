"""The section on reporting guidelines: which section of the report addresses which item.

STROBE's items are cited by number, TARGET and NIST SP 800-226 by topic.
"""

from dpcausal.report.section import Section, Table

STROBE = (
    ("1b, summary of what was done and found", "summary"),
    ("3, objectives", "question"),
    ("4, study design", "question"),
    ("6a, eligibility criteria", "question"),
    ("7, outcomes, exposures, potential confounders", "question inputs"),
    ("9, efforts to address bias", "question diagnostics confounding"),
    ("10, study size", "result"),
    ("11, quantitative variables and groupings", "inputs"),
    ("12a, statistical methods", "result provenance"),
    ("12c, missing data", "inputs"),
    ("12e, sensitivity analyses", "confounding"),
    ("13a, numbers of individuals", "result"),
    ("16a, main results and their precision", "result"),
    ("16b, category boundaries", "inputs"),
    ("17, other analyses", "diagnostics confounding"),
    ("18, key results", "summary"),
    ("19, limitations", "result limitations"),
    ("2, 5, 8, 14, 15, 20, 21 and 22: background, setting, sources, participants, discussion, funding", ""),
)
TARGET = (
    ("abstract: what was asked and found", "summary"),
    ("introduction: the causal question", "question"),
    ("methods: eligibility, time zero, strategies, outcome, estimand of the target trial", "question"),
    ("methods: how treatment was assigned, and the identifying assumptions", "question result"),
    ("methods: how each part was mapped to the data", "inputs"),
    ("methods: the analysis plan", "inputs provenance"),
    ("results: the estimate of each estimand, with its precision", "result"),
    ("results: sensitivity to assumptions", "confounding diagnostics"),
    ("discussion: limitations", "result limitations"),
    ("other information: registration, data, code, funding", "audit_trail provenance"),
)
NIST = (
    ("the guarantee: epsilon, delta, variant", "privacy"),
    ("the privacy unit, and bounded neighbours", "privacy"),
    ("composition and the privacy budget", "privacy audit_trail"),
    ("utility, and bias from bounds and noise", "result inputs"),
    ("correctness of the algorithms: sensitivity, noise, floating point, random numbers", "provenance"),
    ("the trust model", "privacy"),
    ("security, access and side channels", "limitations audit_trail"),
    ("data collection and what happened before", "limitations inputs"),
)


def guidelines(numbers: dict[str, int]) -> Section:
    """List, for each guideline, the section that addresses each of its topics.

    Args:
        numbers: The number of each section, by its key.
    """
    tables = tuple(
        Table(name, ("topic", "section"), tuple((topic, _places(keys, numbers)) for topic, keys in topics))
        for name, topics in (
            ("STROBE, by item", STROBE),
            ("TARGET, by topic", TARGET),
            ("NIST SP 800-226, by topic", NIST),
        )
    )
    paragraphs = ("Where this report addresses each guideline. It does not replace their checklists.",)
    return Section("guidelines", "TARGET, STROBE and NIST SP 800-226", paragraphs=paragraphs, tables=tables)


def _places(keys: str, numbers: dict[str, int]) -> str:
    return ", ".join(str(numbers[key]) for key in keys.split()) or "not in this report: left to the authors"
