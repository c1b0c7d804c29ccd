"""The data sets: the catalogue, what is shipped, and loaders on generated tables of the shape of MIMIC and TCGA."""

import csv
import gzip
import hashlib
import re
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

import dpcausal as dpc
from benchmarks.data import mimic, tcga
from benchmarks.data.__main__ import listed, main
from benchmarks.data.catalogue import CATALOGUE, DataSource
from benchmarks.data.files import SHIPPED, data_file, is_here
from benchmarks.datasets import DataSet, acic, lalonde, nhefs

ROOT = Path(__file__).parents[2]
SHIPPED_FILES = [(source, file) for source in CATALOGUE for file in source.files if file.shipped]


def test_shipped_files_are_those_of_the_catalogue_and_no_others() -> None:
    for source, file in SHIPPED_FILES:
        content = (SHIPPED / source.name / file.name).read_bytes()
        assert (len(content), hashlib.sha256(content).hexdigest()) == (file.size, file.sha256)
    found = {path.relative_to(SHIPPED).as_posix() for path in SHIPPED.glob("*/*") if "__pycache__" not in path.parts}
    data = {path for path in found if not path.endswith(("LICENSE", "NOTICE.md"))}
    assert data == {f"{source.name}/{file.name}" for source, file in SHIPPED_FILES}


@pytest.mark.parametrize("source", {source.name: source for source, _ in SHIPPED_FILES}.values(), ids=lambda s: s.name)
def test_what_is_shipped_may_be_shipped_and_says_so(source: DataSource) -> None:
    folder = SHIPPED / source.name
    assert (folder / "NOTICE.md").is_file()
    permissive = {"CDLA-Sharing-1.0", "CDLA-Permissive-1.0", "ODC-By-1.0", "MIT"}
    assert source.licence.split(" ")[0] in permissive


def test_wheel_holds_no_data() -> None:
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[tool.hatch.build.targets.wheel]\npackages = ["src/dpcausal"]\n' in declared


def test_shipped_sets_load_without_a_folder() -> None:
    assert [data.n for data in (nhefs(), lalonde(), acic())] == [1566, 445, 4802]
    with pytest.raises(FileNotFoundError, match="zymu_2"):
        acic(None, 2)


def test_the_given_folder_comes_before_what_is_shipped(tmp_path: Path) -> None:
    assert data_file("nhefs/NHEFS.csv", tmp_path) == SHIPPED / "nhefs" / "NHEFS.csv"
    own = tmp_path / "nhefs" / "NHEFS.csv"
    own.parent.mkdir()
    own.write_text("qsmk\n", encoding="utf-8")
    assert data_file("nhefs/NHEFS.csv", tmp_path) == own
    assert not is_here("ihdp/ihdp_npci_1.csv", tmp_path)


def test_each_source_has_its_facts_in_the_list(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    main([str(tmp_path)])
    shown = capsys.readouterr().out
    for source in CATALOGUE:
        for fact in (source.title, source.source, source.licence, source.used_by, source.credential):
            assert fact in shown
        for file in source.files:
            assert f"{source.name}/{file.name}: " in shown
    assert len(re.findall(r"sha256 [0-9a-f]{64}, (?:shipped|absent)", shown)) == 35


def test_a_wrong_file_ends_the_check_with_1(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wrong = tmp_path / "twins" / "Twin_data.csv.gz"
    wrong.parent.mkdir()
    wrong.write_bytes(b"another file")
    with pytest.raises(SystemExit) as ended:
        main([str(tmp_path)])
    assert "1 of these files differ" in str(ended.value)  # a text is printed, and the exit code is 1
    assert ", WRONG CHECKSUM\n" in capsys.readouterr().out
    with pytest.raises(SystemExit):
        main([str(tmp_path / "no folder")])


def test_page_of_the_data_sets_agrees_with_the_catalogue() -> None:
    page = (ROOT / "docs" / "data.md").read_text(encoding="utf-8")
    rows = dict(re.findall(r"^\| `([\w-]+)` \|(.*)\|$", page, re.MULTILINE))
    assert list(rows) == [source.name for source in CATALOGUE]
    for source in CATALOGUE:
        assert source.licence in rows[source.name]
        shipped = [file.name for file in source.files if file.shipped]
        assert all(f"`{name}`" in rows[source.name] for name in shipped)
        assert ("not shipped" in rows[source.name]) == (not shipped)


# Tables of the shape of MIMIC: the files' names and all of their columns, as PhysioNet publishes them.

III = {
    "PATIENTS": "ROW_ID SUBJECT_ID GENDER DOB DOD DOD_HOSP DOD_SSN EXPIRE_FLAG",
    "ICUSTAYS": "ROW_ID SUBJECT_ID HADM_ID ICUSTAY_ID DBSOURCE FIRST_CAREUNIT LAST_CAREUNIT FIRST_WARDID LAST_WARDID "
    "INTIME OUTTIME LOS",
    "LABEVENTS": "ROW_ID SUBJECT_ID HADM_ID ITEMID CHARTTIME VALUE VALUENUM VALUEUOM FLAG",
    "CHARTEVENTS": "ROW_ID SUBJECT_ID HADM_ID ICUSTAY_ID ITEMID CHARTTIME STORETIME CGID VALUE VALUENUM VALUEUOM "
    "WARNING ERROR RESULTSTATUS STOPPED",
}
IV = {
    "hosp/patients": "subject_id gender anchor_age anchor_year anchor_year_group dod",
    "icu/icustays": "subject_id hadm_id stay_id first_careunit last_careunit intime outtime los",
    "hosp/labevents": "labevent_id subject_id hadm_id specimen_id itemid order_provider_id charttime storetime value "
    "valuenum valueuom ref_range_lower ref_range_upper flag priority comments",
    "icu/chartevents": "subject_id hadm_id stay_id caregiver_id charttime storetime itemid value valuenum valueuom "
    "warning",
    "icu/procedureevents": "subject_id hadm_id stay_id caregiver_id starttime endtime storetime itemid value valueuom "
    "location locationcategory orderid linkorderid ordercategoryname ordercategorydescription patientweight isopenbag "
    "continueinnextdept statusdescription originalamount originalrate",
}
START = datetime(2150, 1, 1)  # noqa: DTZ001 (MIMIC's times have no zone)
LAST_HOUR = 12
"""Stays last 12 hours, so the moment is from hour 10 to hour 12, and hour 3 to 9 is always within the ten before it."""

Line = Mapping[str, object]


def write(file: Path, columns: str, lines: Sequence[Line], *, packed: bool = True) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    with gzip.open(f"{file}.csv.gz", "wt", newline="") if packed else file.with_suffix(".csv").open("w") as text:
        writer = csv.DictWriter(text, columns.split())
        writer.writeheader()
        writer.writerows([{name: line.get(name.lower(), "") for name in columns.split()} for line in lines])


def at(hour: float) -> str:
    return f"{START + timedelta(hours=hour):%Y-%m-%d %H:%M:%S}"


def events(count: int) -> dict[str, list[dict[str, object]]]:
    """Return patients whose hematocrit is their number; every second one is ventilated, the last one lacks sodium."""
    found: dict[str, list[dict[str, object]]] = {
        "patients": [],
        "stays": [],
        "labs": [],
        "charts": [],
        "procedures": [],
    }
    for number in range(1, count + 1):
        key = {"subject_id": number, "hadm_id": 1000 + number, "icustay_id": 2000 + number, "stay_id": 2000 + number}
        born = {"gender": "FM"[number % 2], "dob": "2100-01-01 00:00:00", "anchor_age": 48, "anchor_year": 2148}
        found["patients"].append(key | born | {"anchor_year_group": "2014 - 2016"})
        found["stays"].append(key | {"intime": at(0), "outtime": at(LAST_HOUR), "los": 0.5})
        # A second stay of the same patient does not count.
        found["stays"].append(
            key | {"icustay_id": 9000 + number, "stay_id": 9000 + number, "intime": at(99), "outtime": at(199)}
        )
        labs: list[tuple[int, float, float]] = [
            (50983, 5, 140),
            (51279, 4, 3.0),
            (51279, 6, 4.0),
            (50931, 5, 100),
            (51221, 5, 20 + number),
        ]
        labs = labs[1:] if number == count else labs
        labs += [(51279, -30, 9.9), (51279, 12.5, 3.8), (51279, 14, 1.1)]  # too early, the outcome, a later one
        for item, hour, value in labs:
            found["labs"].append(key | {"itemid": item, "charttime": at(hour), "value": value, "valuenum": value})
        charts: list[tuple[int, float, float]] = [(220045, 4, 70), (220045, 8, 90), (220210, 5, 18), (220045, 40, 200)]
        if number % 2 == 0:
            charts.append((220339, 9.9, 5))  # PEEP
            found["procedures"].append(key | {"itemid": 225792, "starttime": at(2), "endtime": at(20)})
        else:
            found["procedures"].append(key | {"itemid": 225792, "starttime": at(2), "endtime": at(4)})  # over by then
        for item, hour, value in charts:
            chart = {"itemid": item, "charttime": at(hour), "value": value, "valuenum": value, "error": 0}
            found["charts"].append(key | chart)
        found["charts"].append(key | {"itemid": 211, "charttime": at(5), "value": 299, "valuenum": 299, "error": 1})
    return found


def mimic_iii(folder: Path, count: int = 8, *, packed: bool = True) -> None:
    lines = events(count)
    for (name, columns), part in zip(III.items(), ("patients", "stays", "labs", "charts"), strict=True):
        write(folder / "mimic-iii" / name, columns, lines[part], packed=packed)


def mimic_iv(folder: Path, count: int = 8) -> None:
    lines = events(count)
    lines["charts"] = [line for line in lines["charts"] if not line["error"]]  # MIMIC-IV has no such lines
    for (name, columns), part in zip(IV.items(), ("patients", "stays", "labs", "charts", "procedures"), strict=True):
        write(folder / "mimic-iv" / name, columns, lines[part])


def check_table(data: DataSet) -> None:
    assert data.n == 7  # the last one has no sodium
    assert data.column("hematocrit").tolist() == [21, 22, 23, 24, 25, 26, 27]
    assert data.column("ventilated").tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert data.column("female").tolist() == [0, 1, 0, 1, 0, 1, 0]
    assert set(data.column("heart_rate")) == {80.0}  # the mean of 70 and 90, without the error and what came later
    assert set(data.column("rbc")) == {3.5}
    assert set(data.column("rbc_after")) == {3.8}
    assert set(data.column("age")) == {50.0}
    learner = dpc.RLearner(covariates=data.names, basis=dpc.Polynomial(["hematocrit"], degree=2))
    assert learner.estimate(data.vault(), epsilon=1.0, delta=1e-6).effect([[21.0]]).shape == (1,)


def test_mimic_iii_is_read_as_the_paper_reads_it(tmp_path: Path) -> None:
    mimic_iii(tmp_path)
    check_table(mimic.mimic_iii(tmp_path))


def test_mimic_iv_gives_the_same_table(tmp_path: Path) -> None:
    mimic_iv(tmp_path)
    check_table(mimic.mimic_iv(tmp_path))


def test_mimic_may_be_unpacked(tmp_path: Path) -> None:
    mimic_iii(tmp_path, packed=False)
    check_table(mimic.mimic_iii(tmp_path))


def test_absent_files_of_mimic_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"expected mimic-iii/PATIENTS\.csv\.gz in a folder.*got no folder"):
        mimic.mimic_iii(None)
    mimic_iv(tmp_path)
    (tmp_path / "mimic-iv" / "icu" / "procedureevents.csv.gz").unlink()
    with pytest.raises(FileNotFoundError, match=r"expected mimic-iv/icu/procedureevents\.csv\.gz"):
        mimic.mimic_iv(tmp_path)


def test_absent_columns_of_mimic_are_named(tmp_path: Path) -> None:
    mimic_iii(tmp_path)
    write(tmp_path / "mimic-iii" / "LABEVENTS", "SUBJECT_ID ITEMID CHARTTIME VALUE", [{"subject_id": 1}])
    with pytest.raises(ValueError, match="got none called VALUENUM"):
        mimic.mimic_iii(tmp_path)


def test_files_that_the_loaders_read_are_those_of_the_catalogue() -> None:
    listed_files = {source.name: [file.name for file in source.files] for source in CATALOGUE}
    for version in (mimic.MIMIC_III, mimic.MIMIC_IV):
        assert sorted(listed_files[version.name]) == sorted(f"{name}.csv.gz" for name in version.columns)
    assert [f"tcga/{name}" for name in listed_files["tcga"]] == [tcga.FILE]


def gene_expressions(folder: Path, patients: int, genes: int) -> np.ndarray:
    """Return what was written: expressions of patients by genes that vary less and less."""
    generator = np.random.default_rng(0)
    values = 2 ** (8 + generator.standard_normal((patients, genes)) * np.linspace(3, 0.5, genes)) - 1
    barcodes = [f"TCGA-AA-{place:04}-01A-11R-A29S-07" for place in range(patients)]
    normal = [barcode.replace("-01A", "-11A") for barcode in barcodes[:5]]  # normal tissue of the same patients
    file = folder / tcga.FILE
    file.parent.mkdir()
    with file.open("w", encoding="utf-8") as text:
        print("gene_id", *barcodes, *normal, sep="\t", file=text)
        for place in range(genes):
            shown = [f"{value:.6f}" for value in values[:, place]]
            if place == genes - 1:
                shown[0] = "NA"
            print(f"G{place}|{place}", *shown, *["1.0"] * 5, sep="\t", file=text)
    return values


def test_tcga_gives_patients_by_their_most_variable_genes(tmp_path: Path) -> None:
    values = gene_expressions(tmp_path, 200, 30)
    data = tcga.tcga(tmp_path, count=20)
    assert data.n == 200
    assert len(data.covariates) == 20
    logs = np.log2(1 + values)
    expected = [f"G{place}|{place}" for place in np.argsort(-logs.var(axis=0))[:20]]
    assert list(data.names) == expected
    assert data.column("G0|0") == pytest.approx(logs[:, 0], abs=1e-6)
    arms, outcomes = data.column("t"), data.column("y")
    total = sum(data.column(gene) for gene in expected[:10])
    design = np.column_stack([np.ones(data.n), arms, total])
    assert np.linalg.lstsq(design, outcomes, rcond=None)[0][1] == pytest.approx(data.truth, abs=0.4)
    assert np.corrcoef(arms, total)[0, 1] > 0.3  # confounded
    assert data.vault().n == 200


def test_tcga_by_a_public_list_of_genes(tmp_path: Path) -> None:
    gene_expressions(tmp_path, 20, 12)
    data = tcga.tcga(tmp_path, genes=[f"G{place}|{place}" for place in range(12)])
    assert data.column("G11|11")[0] == 0  # NA
    with pytest.raises(ValueError, match=r"expected the gene TP53\|7157"):
        tcga.tcga(tmp_path, genes=["TP53|7157"])


def test_another_file_than_tcgas_is_refused(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="tcga"):
        tcga.tcga(tmp_path)
    file = tmp_path / tcga.FILE
    file.parent.mkdir()
    file.write_text("sample\tTCGA-OR-A5J1-01\nTP53\t1\n", encoding="utf-8")
    with pytest.raises(ValueError, match="gene_id"):
        tcga.tcga(tmp_path)


def test_the_list_needs_no_folder() -> None:
    assert any(line.endswith("shipped") for line in listed(None))
