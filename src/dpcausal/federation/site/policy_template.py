"""A template of a site's policy, and a new site's folder."""

from pathlib import Path

from dpcausal.errors import StudyError
from dpcausal.federation.protocol.signatures import Key
from dpcausal.federation.site.policy import FILE, KEY, VERSION
from dpcausal.utils.validation import is_name

_POLICY = """\
# The policy of a site. No request can change it. Fill in the marked lines, and do not publish this file.

version = {version}                                  # of the format of this file
site = "{name}"

# The table: a .parquet or .csv file in this folder, warehouse.duckdb#visits, or
# postgresql://user@host/database#schema.table
table = "table.parquet"                      # <- fill in

# The ledger, which records what was spent. After filling in this file, create it: dpcausal site create-ledger FOLDER
ledger = "ledger.db"

# A witness of the ledger's length, best on another disk or server: a file that ends in .log, or an address.
# With it, a ledger that was truncated or restored from a backup is refused.
# witness = "/mnt/elsewhere/{name}-witness.log"

# The version of the data. After an update, write the new version here and declare it with:
# dpcausal ledger add-version
as_of = "2026-06-30"                         # <- fill in

# Privacy unit: what may differ between neighbouring tables: record, record_within_arm or outcome.
protects = "record"

# With record_within_arm or outcome: the columns with public values, such as ["arm"]. A study must declare the same.
public = []

# If studies look at a growing table every week for one price: the column with the week in which a person entered. It
# must be the same in every version of the table. A study must declare the same.
# entry = "week"

# The columns that a study may read, and the estimators that it may name.
columns = []                                 # <- fill in, for instance ["arm", "age", "score"]
estimators = ["difference_in_means", "stratification", "regression_adjustment"]

# The largest price of one study, and the smallest number of units with which this site answers.
epsilon_per_study = 1.0
delta_per_study = 0.0
minimum_units = 100

# Whether `dpcausal check` may inspect the table here. It prints exact counts and some cells to the person who runs it.
allow_check = true

# The number of people who must approve a study.
approvals = 1

# For how many days an approval counts after it was signed. Without this line it counts without end.
approval_days = 365

# Whether every change of people, keys and this file must be signed by a person of the site (--sign FILE).
signed_changes = false

# The time and memory limits for computing an answer.
seconds = 600
memory = "4 GB"

# The budget for all studies of this table. The ledger records it: it cannot be raised later.
[budget]
epsilon = 3.0                                # <- decide
delta = 0.0

# Where people have several records: the column that identifies a person, and which record counts.
# [unit]
# name = "patient"
# keep = "first"
# by = "visit"

# Sums of their own that studies describe, for the estimator formula_estimator, which must be listed above too: of which
# columns, how many in one query, and at what price. Without this table they are refused.
# [custom_sums]
# columns = ["age", "score"]
# coordinates = 20
# epsilon = 1.0

# Secure sums, in which only a sum over several sites is ever opened. This site takes part only with this table and a
# witness: in studies with at least so many honest sites, that allow for so many of the listed sites to collude, and for
# every site that is not listed. Ask each site for its key (dpcausal site key FOLDER), not the coordinator.
# [secure_sums]
# honest = 4
# colluding = 1
# [secure_sums.sites]
# south = "..."

# The most that one requester may spend of the budget, in all studies together; without a line, all of it.
# [requester_budgets]
# ben = {{ epsilon = 2.0 }}

# Columns that the table calls or codes otherwise than studies do. People approve a study together with it; a cell with
# a code that is not listed is missing.
# [mapping.sex]
# column = "gender_concept_id"
# codes = {{ female = 8532, male = 8507 }}

# Further tables, which studies name with table = "labs". All tables share the ledger and its budget. Not with entry.
# [tables.labs]
# table = "labs.parquet"
# as_of = "labs 2026-06-30"
# columns = ["arm", "age", "score"]

# Who may ask, with their public keys.
[requesters]
# anna = "..."                               # <- fill in
"""


def new_site(folder: Path, name: str) -> str:
    """Create a site's folder with a key and a policy to fill in, and return the public key."""
    if not is_name(name):
        raise StudyError(expected="a name of letters, digits, - and _", got=repr(name), hint="for instance north.")
    if (folder / FILE).exists() or (folder / KEY).exists():
        raise StudyError(problem=f"{folder} holds a site already", hint="choose another folder, or use the site there.")
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / FILE).write_text(_POLICY.format(name=name, version=VERSION), encoding="utf-8")
    (folder / FILE).chmod(0o600)
    return Key.make(name, folder / KEY).public
