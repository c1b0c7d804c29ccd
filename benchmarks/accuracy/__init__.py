"""How near private estimates come to the truth, and to what the same data give without privacy.

`python -m benchmarks.accuracy --suite papers --data FOLDER --json`, with a folder that holds `ihdp`, `lalonde` and
`acic2016`.
"""
