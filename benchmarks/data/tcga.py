"""Gene expression of The Cancer Genome Atlas as a table for DP-CATE's Figure 7: thousands of columns, one effect.

Schröder, Melnychuk and Feuerriegel (2025), Supplement H: the 4,000 genes that vary most, treatment by the sum of the
ten that vary most of all, one effect for everybody. The paper's table has 9,659 patients; it does not say which samples
it leaves out. Here a patient counts once, by the primary tumour. Treatment and outcome are simulated from a seed.
"""

from collections.abc import Sequence
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

import dpcausal as dpc
from benchmarks.data.files import data_file
from benchmarks.datasets import DataSet, connection

FILE = "tcga/EBPlusPlusAdjustPANCAN_IlluminaHiSeq_RNASeqV2.geneExp.tsv"
GENES = 4_000
EFFECT = 1.0
_TEN = 10


def tcga(
    folder: Path | str | None, genes: Sequence[str] | None = None, *, count: int = GENES, seed: int = 0
) -> DataSet:
    """Return the genes' expressions, as log2(1 + x), with a simulated treatment and outcome.

    `genes` is a public list such as "TP53|7157", most variable first. NOT PRIVATE without it: then they are the most
    variable ones of this very table, as in the paper.
    """
    database = connection().cursor()
    _open(database, data_file(FILE, folder))
    chosen = list(genes or _most_variable(database, count))
    values = _patients(database, chosen)
    total = np.sum([values[gene] for gene in chosen[:_TEN]], axis=0)
    total = (total - total.mean()) / total.std()
    generator = np.random.default_rng(seed)
    arms = (generator.random(len(total)) < 1 / (1 + np.exp(-1.5 * total))).astype(np.int64)
    outcomes = EFFECT * arms + total + generator.standard_normal(len(total))
    return DataSet(
        name="TCGA",
        table=pa.table({"t": arms, "y": outcomes, **values}),
        treatment=dpc.Treatment("t", undeclared=0),
        outcome=dpc.Real("y", -10, 10),
        covariates=tuple(dpc.Real(gene, 0, 20) for gene in chosen),
        truth=EFFECT,
        short=tuple(chosen[:_TEN]),
    )


def _open(database: duckdb.DuckDBPyConnection, file: Path) -> None:
    """Make a table of genes and their expressions in patients: primary tumours, one sample for each patient."""
    with file.open(encoding="utf-8") as text:
        names = text.readline().rstrip("\n").split("\t")
    if names[0] != "gene_id" or not any(name.startswith("TCGA-") for name in names):
        raise ValueError(
            f"expected the columns gene_id and barcodes such as TCGA-OR-A5J1-01A-11R-A29S-07 in {file}, got {names[:3]}"
        )
    # TCGA-OR-A5J1-01A: the patient has twelve characters; 01 is a primary tumour, 03 one of the blood.
    order = sorted(range(1, len(names)), key=names.__getitem__, reverse=True)
    samples = {names[place][:12]: place + 1 for place in order if names[place][13:15] in {"01", "03"}}
    # A line is one text: split into a list it is read far faster than as eleven thousand columns.
    database.execute(
        """CREATE OR REPLACE TEMP TABLE genes AS SELECT cells[1] AS gene, list_transform(list_select(cells, ?),
            lambda cell: log2(1 + greatest(coalesce(try_cast(cell AS DOUBLE), 0), 0))) AS expressions
        FROM (SELECT string_split(line, '\t') AS cells FROM read_csv(?, columns = {'line': 'VARCHAR'}, header = true,
            auto_detect = false, delim = '\x01', quote = '', escape = '', max_line_size = 4000000))""",
        [[samples[patient] for patient in sorted(samples)], str(file)],
    )


def _most_variable(database: duckdb.DuckDBPyConnection, count: int) -> list[str]:
    """NOT PRIVATE: the genes that vary most in the table, most variable first."""
    ordered = "SELECT gene FROM genes ORDER BY list_aggregate(expressions, 'var_pop') DESC, gene LIMIT ?"
    return [gene for (gene,) in database.execute(ordered, [count]).fetchall()]


def _patients(database: duckdb.DuckDBPyConnection, genes: Sequence[str]) -> dict[str, NDArray[np.float64]]:
    """Return the expressions of each gene, patients in the order of their barcodes."""
    asked = "SELECT gene, expressions FROM genes WHERE gene IN (SELECT unnest(?))"
    table = database.sql(asked, params=[list(genes)]).to_arrow_table()
    rows = {gene.as_py(): place for place, gene in enumerate(table["gene"])}
    if missing := [gene for gene in genes if gene not in rows]:
        raise ValueError(f"expected the gene {missing[0]} in {FILE}, got none; write genes as symbol|number")
    return {gene: table["expressions"][rows[gene]].values.to_numpy() for gene in genes}
