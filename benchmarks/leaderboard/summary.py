"""From runs to the table of results, and to the numbers that the leaderboard is about."""

from typing import Any

import duckdb
import pyarrow as pa

Line = dict[str, Any]

_LINES = """
SELECT "table", MAX(n) AS n, epsilon, contestant, "group", private, COUNT(*) AS runs,
    AVG(ABS(estimate - truth) / ABS(truth)) AS error,
    STDDEV_SAMP(ABS(estimate - truth) / ABS(truth)) / SQRT(COUNT(*)) AS error_se,
    AVG((estimate - truth) / ABS(truth)) AS bias,
    SQRT(AVG(((estimate - truth) / truth) * ((estimate - truth) / truth))) AS rmse,
    COUNT(low) / COUNT(*) AS intervals,
    AVG(CASE WHEN low IS NULL THEN NULL WHEN truth BETWEEN low AND high THEN 1.0 ELSE 0.0 END) AS coverage,
    AVG((high - low) / ABS(truth)) AS width,
    MEDIAN(privacy_sd) / NULLIF(MEDIAN(sampling_sd), 0) AS privacy_to_sampling,
    MEDIAN(seconds) AS seconds,
    MODE(method) AS method, MAX(code) AS code
FROM (SELECT * REPLACE (regexp_replace("table", '(IHDP|ACIC) .*', '\\1') AS "table") FROM runs)
GROUP BY "table", epsilon, contestant, "group", private ORDER BY "table", epsilon, error
"""


def lines(runs: pa.Table) -> list[Line]:
    """One line for each table, epsilon and contestant; errors, bias and widths are relative to the true effect."""
    return _rounded(_asked(runs, _LINES))


def _asked(runs: pa.Table, text: str) -> list[Line]:
    connection = duckdb.connect()
    connection.register("runs", runs)
    answer = connection.sql(text)
    return [dict(zip(answer.columns, line, strict=True)) for line in answer.fetchall()]


_RANKINGS = """
WITH own AS (
    SELECT regexp_replace("table", '(IHDP|ACIC) .*', '\\1') AS data, "table", epsilon, contestant,
        concat(method, ', delta ', delta) AS method, ABS(estimate - truth) / ABS(truth) AS error
    FROM runs
    WHERE "group" = 'ours' AND regexp_matches("table", 'IHDP|ACIC|Lalonde|Synth')
),
-- The choice and the contestant that was chosen are the same estimator: their runs count together.
methods AS (SELECT "table", epsilon, method, AVG(error) AS error FROM own GROUP BY ALL),
asked AS (SELECT DISTINCT data, "table", epsilon, contestant, method FROM own),
averaged AS (
    SELECT data, epsilon, contestant, AVG(error) AS error, MODE(method) AS method
    FROM asked JOIN methods USING ("table", epsilon, method) GROUP BY data, epsilon, contestant
),
matching AS (
    SELECT regexp_replace("table", '(IHDP|ACIC) .*', '\\1') AS data, epsilon,
        AVG(ABS(estimate - truth) / ABS(truth)) AS error
    FROM runs WHERE contestant = 'Yuan et al. 2025, sample level, corrected' GROUP BY ALL
)
SELECT chosen.data AS "table", chosen.epsilon, chosen.method AS chosen, chosen.error, best.contestant AS best,
    best.error AS best_error, chosen.error / best.error AS ratio, matching.error AS matching_error,
    chosen.error < matching.error AS below_matching
FROM averaged AS chosen
JOIN (
    SELECT data, epsilon, MIN(error) AS error, ARG_MIN(contestant, error) AS contestant
    FROM averaged WHERE contestant <> 'what rank_estimators picks' GROUP BY data, epsilon
) AS best USING (data, epsilon)
JOIN matching USING (data, epsilon)
WHERE chosen.contestant = 'what rank_estimators picks' ORDER BY ALL
"""


def choices(runs: pa.Table) -> list[Line]:
    """On the small classic sets: the choice beside the best of our own estimators, and beside the paper's matching."""
    return _rounded(_asked(runs, _RANKINGS))


def _rounded(table: list[Line]) -> list[Line]:
    return [
        {name: float(f"{value:.4g}") if isinstance(value, float) else value for name, value in line.items()}
        for line in table
    ]
