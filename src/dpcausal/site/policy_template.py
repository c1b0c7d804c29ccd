"""A new site's folder."""

from pathlib import Path

from dpcausal.errors import StudyError
from dpcausal.federation.signatures import Key, is_name
from dpcausal.site.policy import FILE, KEY

_POLICY = """\
# The policy of a site. Nothing in a request can change it. Fill in what is marked, and keep this file to yourself.

site = "{name}"

# Where the table lies: a .parquet or .csv file in this folder, warehouse.duckdb#visits, or
# postgresql://user@host/database#schema.table
table = "table.parquet"                      # <- fill in

# Where spending on it is kept. Once this file is filled in, make the ledger with: dpcausal site create-ledger FOLDER
ledger = "ledger.db"

# A second place, best on another disk or server, that knows how long the ledger is: a file that ends in .log, or an
# address. With it, a ledger that was cut or put back from a copy is refused.
# witness = "/mnt/elsewhere/{name}-witness.log"

# Which version of the data this is. After an update write the new one here, and declare it with:
# dpcausal ledger add-version
as_of = "2026-06-30"                         # <- fill in

# What one person may change between two tables that nobody may tell apart: record, record_within_arm or outcome.
protects = "record"

# With record_within_arm or outcome: the columns whose values are public, such as ["arm"]. A study must say the same.
public = []

# What a study may read, and which estimators it may name.
columns = []                                 # <- fill in, for instance ["arm", "age", "score"]
estimators = ["difference_in_means", "stratification", "regression_adjustment"]

# What one study may cost at most, and below how many units this site does not answer.
epsilon_per_study = 1.0
delta_per_study = 0.0
minimum_units = 100

# Whether `dpcausal check` may look at the table here. It tells exact counts and some cells, to nobody but who runs it.
allow_check = true

# How many people must approve a study.
approvals = 1

# How long, and in how much memory, an answer may be computed.
seconds = 600
memory = "4 GB"

# What may ever be spent on this table. The ledger remembers it: it cannot be raised later.
[budget]
epsilon = 3.0                                # <- decide
delta = 0.0

# Where people have several records: which column says whose a record is, and which of them counts.
# [unit]
# name = "patient"
# keep = "first"
# by = "visit"

# Who may ask, with their public keys.
[requesters]
# anna = "..."                               # <- fill in
"""


def new_site(folder: Path, name: str) -> str:
    """Make a site's folder with a key and a policy to fill in, and return the public key."""
    if not is_name(name):
        raise StudyError(expected="a name of letters, digits, - and _", got=repr(name), hint="for instance north.")
    if (folder / FILE).exists() or (folder / KEY).exists():
        raise StudyError(
            expected="a folder that holds no site yet", got=str(folder), hint="choose another, or use the one there."
        )
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    (folder / FILE).write_text(_POLICY.format(name=name), encoding="utf-8")
    (folder / FILE).chmod(0o600)
    return Key.make(name, folder / KEY).public
