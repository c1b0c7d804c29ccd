"""The section on reporting guidelines: which section of the report addresses which item.

CONSORT is for trials, STROBE and TARGET are for observational studies. CONSORT's and STROBE's items are cited by
number (CONSORT 2025, STROBE 2007), TARGET and NIST SP 800-226 by topic.
"""

from dpcausal.page.language import Language, message
from dpcausal.report.section import ReportInputs, Section, Table

Topics = tuple[tuple[str, str], ...]

CONSORT: Topics = (
    (message("1b, structured summary"), "summary"),
    (message("7, objectives"), "question"),
    (message("9, trial design"), "question"),
    (message("12, eligibility criteria"), "question"),
    (message("13, intervention and comparator"), "question"),
    (message("14, outcomes"), "question inputs"),
    (message("16, sample size and planned precision"), "result"),
    (message("21, statistical methods, missing data"), "methods inputs"),
    (message("26, numbers analysed, effects and their precision"), "result"),
    (message("30, limitations"), "limitations"),
    (message("everything else, such as registration, allocation, blinding, harms and funding"), ""),
)
STROBE: Topics = (
    (message("1b and 18, summary and key results"), "summary"),
    (message("3, objectives"), "question"),
    (message("4, study design"), "question"),
    (message("6a, eligibility criteria"), "question"),
    (message("7, outcomes, exposures, potential confounders"), "question inputs"),
    (message("9, efforts to address bias"), "question diagnostics confounding"),
    (message("10 and 13a, study size and numbers of individuals"), "result"),
    (message("11 and 16b, quantitative variables and category boundaries"), "inputs"),
    (message("12, statistical methods, missing data, sensitivity analyses"), "methods inputs confounding"),
    (message("16a, main results and their precision"), "result"),
    (message("17, other analyses"), "diagnostics confounding"),
    (message("19, limitations"), "result limitations"),
    (message("2, 5, 8, 14, 15, 20, 21 and 22: background, setting, sources, participants, discussion, funding"), ""),
)
TARGET: Topics = (
    (message("abstract: what was asked and found"), "summary"),
    (message("introduction: the causal question"), "question"),
    (message("methods: eligibility, time zero, strategies, outcome, estimand of the target trial"), "question"),
    (message("methods: how treatment was assigned, and the identifying assumptions"), "question result"),
    (message("methods: how each part was mapped to the data"), "inputs"),
    (message("methods: the analysis plan"), "methods inputs"),
    (message("results: the estimate of each estimand, with its precision"), "result"),
    (message("results: sensitivity to assumptions"), "confounding diagnostics"),
    (message("discussion: limitations"), "result limitations"),
    (message("other information: registration, data, code, funding"), "audit_trail provenance"),
)
NIST: Topics = (
    (message("the guarantee, the privacy unit, and bounded neighbours"), "privacy"),
    (message("composition and the privacy budget"), "privacy audit_trail"),
    (message("utility, and bias from bounds and noise"), "result inputs"),
    (message("correctness of the algorithms: sensitivity, noise, floating point, random numbers"), "provenance"),
    (message("the trust model"), "privacy"),
    (message("security, access and side channels"), "limitations audit_trail"),
    (message("data collection and what happened before"), "limitations inputs"),
)


def guidelines(report: ReportInputs, numbers: dict[str, int]) -> Section:
    """List, for each guideline that fits the design, the section that addresses each of its topics.

    Args:
        report: The report.
        numbers: The number of each section, by its key; 0 on the first page.
    """
    say = report.say
    trial = report.study is not None and report.study.design == "trial"
    observational = report.study is not None and report.study.design == "observational"
    fitting: list[tuple[str, Topics]] = []
    fitting += [(say("CONSORT 2025, by item"), CONSORT)] if trial else []
    fitting += [(say("STROBE, by item"), STROBE), (say("TARGET, by topic"), TARGET)] if observational else []
    fitting += [(say("NIST SP 800-226, by topic"), NIST)]
    head = (say("topic"), say("section"))
    tables = tuple(
        Table(name, head, tuple((say(topic), _places(keys, numbers, say)) for topic, keys in topics))
        for name, topics in fitting
    )
    paragraphs = (say("Where this report addresses each guideline. It does not replace their checklists."),)
    return Section("guidelines", say("Reporting guidelines"), paragraphs=paragraphs, tables=tables)


def _places(keys: str, numbers: dict[str, int], say: Language) -> str:
    if not keys:
        return say("left to the authors")
    return ", ".join(f"A{numbers[key]}" if numbers[key] else say("page 1") for key in keys.split())
