"""The file of an experiment to fill in, from a catalogue and the names of a table's columns."""

from collections.abc import Collection, Sequence

from dpcausal.errors import StudyError
from dpcausal.experiment.catalogue import MetricCatalogue
from dpcausal.utils.blanks import quoted

_LONGEST = 200
"""So many characters of the names of other columns are listed."""

_HEAD = """\
# An experiment: everything that is asked of a table, fixed before anything is read.
# Only names of columns and a catalogue of metrics were used, and nothing you fill in may come from the data.
# Replace every "<fill in>", quotation marks included. Then see what it can detect:
#   dpcausal experiment plan {file} --n NUMBER_OF_USERS

version = 1                 # of the format of this file
name = "<fill in>"
question = "<fill in>"      # in words: does the new checkout sell more?
catalogue = {digest}  # the version of the catalogue {name}

# The privacy loss of all metrics, arms and looks together.
epsilon = "<fill in>"       # for instance 0.5
delta = 1e-6                # far below 1 / number of users; less noise from about ten metrics on
method = "holm"             # or "benjamini_hochberg", for the share of false claims among many metrics
# allocation = [0.5, 0.5]   # where arms are not meant to be equal
# unit = {{ name = "user", by = "time", keep = "first" }}  # where a user may have several records

# For a look after each week: uncomment these two, with all weeks to come. All looks are paid for once.
# planned_n = "<fill in>"     # the number of users at the last look
# cohorts = {{ kind = "category", name = "week", values = [1, 2, 3, 4] }}  # when a user entered

[treatment]
name = "<fill in>"          # one of the columns {columns}
arms = "<fill in>"          # every arm in the table, control first: ["old", "new"]
labels = "<fill in>"        # what results call them: ["old page", "new page"]

# Ship where a goal is better and every guardrail is within its margin; stop where harm is shown; otherwise wait.
# Without a decision remove this part, to [[metrics]].
[rule]
goals = "<fill in>"         # metrics of which one must be better: ["{first}"]
"""


def experiment_to_fill_in(
    catalogue: MetricCatalogue, columns: Collection[str], chosen: Sequence[str] = (), file: str = "experiment.toml"
) -> str:
    """Return the text of an experiment's file with blanks, for a table with these columns.

    Args:
        chosen: Which metrics to use; by default all whose columns the table has.
        file: The name of the file, for its first lines.

    Raises:
        StudyError: If a chosen metric needs a column that the table has not, or no metric fits the table.
    """
    names = tuple(dict.fromkeys(chosen)) or catalogue.usable(columns)
    for name in names:
        if absent := [each for each in catalogue.metric(name).names_in_table if each not in columns]:
            raise StudyError(
                problem=f"The table lacks columns of {name!r}: {', '.join(absent)}",
                hint="add them to the table, or leave the metric out.",
            )
    if not names:
        raise StudyError(
            problem=f"The table has the columns of no metric of {catalogue.name}; it has "
            f"{', '.join(sorted(columns))[:200]}",
            hint="add up events for each user first, under the names that the catalogue has.",
        )
    used = {column for name in names for column in catalogue.metric(name).names_in_table}
    others = ", ".join(sorted(set(columns) - used))[:_LONGEST] or "of the table"
    text = _HEAD.format(
        file=file,
        digest=quoted(catalogue.digest),
        name=" ".join(catalogue.name.split()),
        columns=quoted(others)[1:-1],
        first=names[0],
    )
    guardrails = [_guardrail(catalogue, name) for name in names if name in catalogue.margins]
    metrics = [
        f"\n# {quoted(catalogue.metric(name).description)[1:-1]}\n[[metrics]]\nuse = {quoted(name)}\n" for name in names
    ]
    left = [each.name for each in catalogue.metrics if each.name not in names]
    note = f"\n# Not used: {quoted(', '.join(left))[1:-1]}.\n" if left else ""
    return text + "".join(guardrails) + "".join(metrics) + note


def _guardrail(catalogue: MetricCatalogue, name: str) -> str:
    margin = catalogue.margins[name]
    relative = "\nrelative = true" if margin.relative else ""
    return f"\n[[rule.guardrails]]\nmetric = {quoted(name)}\nmargin = {margin.margin!r}{relative}\n"
