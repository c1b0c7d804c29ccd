"""The data sets: source, licence, which paper uses them, and the size and sha256 of each file."""

from dataclasses import dataclass


@dataclass(frozen=True)
class DataFile:
    """A file of a data set.

    Attributes:
        name: Its path within the data set's folder.
        size: In bytes; None where whoever has a credential downloads it, and versions differ.
        sha256: Its digest, in the same cases None.
        shipped: Whether it is in this repository.
    """

    name: str
    size: int | None = None
    sha256: str | None = None
    shipped: bool = False


@dataclass(frozen=True)
class DataSource:
    """A data set and what is to be known before it is used.

    Attributes:
        name: Its folder within the folder of data sets.
        title: What it is.
        source: Where these files come from.
        licence: Under which terms.
        used_by: Which papers use it, and which part of it.
        files: Its files.
        credential: Who gets it, where not everybody does.
    """

    name: str
    title: str
    source: str
    licence: str
    used_by: str
    files: tuple[DataFile, ...]
    credential: str = ""


CATALOGUE: tuple[DataSource, ...] = (
    DataSource(
        name="acic2016",
        title="Challenge of the Atlantic Causal Inference Conference 2016, settings 1 to 10",
        source="github.com/BiomedSciAI/causallib at 803a4d3, causallib/datasets/data/acic_challenge_2016",
        licence="CDLA-Sharing-1.0",
        used_by="PrivATE (setting 1)",
        files=(
            DataFile(
                "x.csv", 697_786, "0d6387ad45d23e54b11cbf967248fb68ad5e578db80d193208b8b4c98b1ed0c1", shipped=True
            ),
            DataFile(
                "zymu_1.csv", 339_560, "002fad96bb55d54edec08a0af46ef4f8ad69e0cfe6294ab48f351f22976a6e76", shipped=True
            ),
            DataFile("zymu_2.csv", 334_091, "bc3a03bb461bb1629add09c01dfc77053cf36e8faf8e48a7645b35ddb4005d1c"),
            DataFile("zymu_3.csv", 343_144, "8090562d3fcf5a3b02ff5493592a2880b95b106e1c12e2c3a6e6c28ae8468ff6"),
            DataFile("zymu_4.csv", 341_908, "61b405c545a451b7e2ce31614150834f94aa4b27069e2755876ed6e11cfee5fd"),
            DataFile("zymu_5.csv", 348_813, "e350ac76d0b8e83f45f7f04a4b76b9a32a0d53098452075617e61ce62ad0463a"),
            DataFile("zymu_6.csv", 344_205, "a059950f0b51056660364eca14524a3d3254f93c608d8a1df9240c2c4179a7b5"),
            DataFile("zymu_7.csv", 347_066, "ac102c3f34680ff901c30fb95985297eea0f20efaf02108f287ceec60b6a2a1f"),
            DataFile("zymu_8.csv", 336_120, "bbcde6ad666640adcd39fd50cab00865d22b5c463ce9db6d0940d8eccd5afcf3"),
            DataFile("zymu_9.csv", 341_289, "02663b776fa87cd3d91ee7871e98c1b4d63579957b12ef9bb1ecf367b7afc366"),
            DataFile("zymu_10.csv", 353_155, "c8ee8ca537ef4315a0ee5753bd01d792a1b3cdacb1fd69e1288b2bb89944d1b7"),
        ),
    ),
    DataSource(
        name="hillstrom",
        title="Hillstrom's e-mail experiment (2008)",
        source="github.com/russluber/hillstrom at 0643628, data/hillstrom_data.csv, renamed",
        licence="none stated",
        used_by="none; the leaderboard",
        files=(
            DataFile("hillstrom.csv", 3_900_976, "27bab8c5d3669f26ec08ebb50a0a78317542f29501156f2e2af6781fab4cd7e2"),
        ),
    ),
    DataSource(
        name="ihdp",
        title="Infant Health and Development Program, outcomes simulated by Hill (2011), realisations 1 to 10",
        source="github.com/AMLab-Amsterdam/CEVAE at 9081f86, datasets/IHDP/csv",
        licence="none stated",
        used_by="PrivATE (realisation 1), multi-site, PP-IPW (1,000 realisations; ten are public here)",
        files=(
            DataFile("ihdp_npci_1.csv", 161_908, "2bdc8b94fdf2f669b1d3d49325fd9359d88418566545003867841312a1653411"),
            DataFile("ihdp_npci_2.csv", 161_741, "36db2f3d002250bc95e5214477718c939fbe7dfe8df573c4050d8b246d314042"),
            DataFile("ihdp_npci_3.csv", 161_557, "bd792ce0642468195b2c3f0cd4c521378d7d52d044f153e844d151a87e067518"),
            DataFile("ihdp_npci_4.csv", 161_748, "ac04602a2f052af1211347bcaff87f7bab356a4a7f42f8c6a81edede51549006"),
            DataFile("ihdp_npci_5.csv", 161_738, "8f9b3ef4b66e8f9dd240c9851233f4fb483c73c25b6d23c6459c666edb9cd691"),
            DataFile("ihdp_npci_6.csv", 161_972, "e05192794201c8a8fe1e4a88f12d3367d3d6b568eadb46365557661bff00712e"),
            DataFile("ihdp_npci_7.csv", 162_281, "246684bfc9e1258e5bdc59c3d1c13c0694a331d1f13026ff79f6c4605e6d3678"),
            DataFile("ihdp_npci_8.csv", 161_806, "6e88b890ee4ed6274b8ea4285500dd0865ab71e17010ee505f7e2a2d507c4511"),
            DataFile("ihdp_npci_9.csv", 161_720, "fe959d86a37be9278ef195fbf139b2b8af1b8246b3518208cd00b295d906a98f"),
            DataFile("ihdp_npci_10.csv", 161_822, "b9bce7e081f245b7689a3c2b5e4ed37162dca8cd596e0998b73ddc0ac92a4919"),
        ),
    ),
    DataSource(
        name="ist",
        title="International Stroke Trial, two subsets of its columns",
        source=(
            "github.com/ellessenne/prr at 8b1af98, data/ist.csv.gz; github.com/kianaf/PTVAE at 1e3f323, "
            "data/ist.csv, renamed; both from the trial's database, doi.org/10.7488/ds/104"
        ),
        licence="ODC-By-1.0 (the database)",
        used_by="multi-site (with recurrent stroke as the outcome, which neither subset has)",
        files=(
            DataFile(
                "ist_prr_subset.csv.gz",
                88_322,
                "228297ad964755fdf58ea0943be46a5cd843c1a789adcd678da947932d3cd678",
                shipped=True,
            ),
            DataFile(
                "ist_ptvae_subset.csv", 300_336, "cfea387f35fb39e754d7661af313685844829bd7c2a763760242842ca1ec5957"
            ),
        ),
    ),
    DataSource(
        name="lalonde",
        title="National Supported Work trial: Dehejia and Wahba's sample, Lalonde's, and comparison groups",
        source=(
            "github.com/vincentarelbundock/Rdatasets at 1dcc2bf: csv/causaldata/nsw_mixtape.csv, "
            "csv/DAAG/nswdemo.csv, csv/causaldata/cps_mixtape.csv, csv/DAAG/psid1.csv, "
            "csv/DAAG/psid3.csv, csv/MatchIt/lalonde.csv, renamed"
        ),
        licence="MIT (causaldata), GPL (DAAG, MatchIt)",
        used_by="PrivATE (445 units), multi-site and PP-IPW (722 units)",
        files=(
            DataFile(
                "cps1_controls_15992.csv", 1_086_556, "e357e728bfefa729ff880377aca072aa01563a4b412d956dcf70f2539446cdf5"
            ),
            DataFile(
                "matchit_lalonde_614.csv", 27_509, "a49703ca0233ba0a27fa9cda959a38a07f6825def0f7743cf2380ce4e57dd3ef"
            ),
            DataFile(
                "nsw_dw_445.csv",
                29_171,
                "72efd333a4b94a2bee55149d3542021d0adde03201d010ebe971e3e863360cd6",
                shipped=True,
            ),
            DataFile("nsw_lalonde_722.csv", 25_898, "3343cb4d20bd1dfd6b4940ca5610cdb2c177166658b2a070e135ec5c5c151020"),
            DataFile(
                "psid1_controls_2490.csv", 118_930, "e66261aba97aec4bb67950efb4af49f9cd31444beeaab9a5c5150f69c19770f3"
            ),
            DataFile(
                "psid3_controls_128.csv", 4_719, "1d23ea49285c74ff18871895b705814d8215d371f592235c8ce14302d05d33f4"
            ),
        ),
    ),
    DataSource(
        name="nhefs",
        title="NHANES I follow-up: stopping to smoke and weight",
        source="github.com/BiomedSciAI/causallib at 803a4d3, causallib/datasets/data/nhefs",
        licence="CDLA-Permissive-1.0",
        used_by="none; the open stand-in for MIMIC-III beside DP-CATE",
        files=(
            DataFile(
                "NHEFS.csv", 364_535, "2144b9c257213c92106703c7630a13f081408291a80d9afae262db6988ecfe75", shipped=True
            ),
            DataFile(
                "NHEFS_codebook.csv",
                4_060,
                "095d41245846f8a7e30ac9a96d2ef0ee7bf01ea42a41b000b7c728c2f5c4a91a",
                shipped=True,
            ),
        ),
    ),
    DataSource(
        name="star",
        title="Tennessee's trial of class sizes",
        source=("github.com/vincentarelbundock/Rdatasets at 1dcc2bf: csv/AER/STAR.csv, csv/Ecdat/Star.csv, renamed"),
        licence="GPL (AER, Ecdat)",
        used_by="multi-site",
        files=(
            DataFile(
                "star_aer_11598.csv", 2_124_167, "0e8b179ea3d883730b25008ca1293c4c8f886aa8d5d299c03ab6ff05d0123ae6"
            ),
            DataFile(
                "star_ecdat_5748.csv", 259_202, "2a029cf43fad58cfc477d8dd1ae431a370e01cf92ef608ede5f421e1c4b93be1"
            ),
        ),
    ),
    DataSource(
        name="twins",
        title="Twins below two kilograms in the United States, one-year survival",
        source="github.com/jsyoon0823/GANITE at e299731, data/Twin_data.csv.gz",
        licence="none stated",
        used_by="none; the leaderboard",
        files=(
            DataFile("Twin_data.csv.gz", 117_071, "0128e5dfdeb468e85fd2818330beff49d4d433b7f7d56d3eb678f87ab15b00a9"),
        ),
    ),
    DataSource(
        name="mimic-iii",
        title="MIMIC-III 1.4, intensive care in Boston, 2001 to 2012",
        source="physionet.org/content/mimiciii",
        licence="PhysioNet Credentialed Health Data License",
        used_by="DP-CATE (Figure 6)",
        files=tuple(DataFile(f"{table}.csv.gz") for table in ("PATIENTS", "ICUSTAYS", "LABEVENTS", "CHARTEVENTS")),
        credential="PhysioNet gives it to credentialed users who finish a course and sign its data use agreement",
    ),
    DataSource(
        name="mimic-iv",
        title="MIMIC-IV, intensive care in Boston, from 2008",
        source="physionet.org/content/mimiciv",
        licence="PhysioNet Credentialed Health Data License",
        used_by="none; DP-CATE's Figure 6 on newer records",
        files=tuple(
            DataFile(f"{table}.csv.gz")
            for table in ("hosp/patients", "hosp/labevents", "icu/icustays", "icu/chartevents", "icu/procedureevents")
        ),
        credential="as MIMIC-III",
    ),
    DataSource(
        name="tcga",
        title="The Cancer Genome Atlas: gene expression of all tumours, PanCanAtlas",
        source="gdc.cancer.gov/about-data/publications/pancanatlas, file 3586c0da-64d0-4b74-a449-5ff4d9136611",
        licence="open access at the Genomic Data Commons, under its policies",
        used_by="DP-CATE (Figure 7)",
        files=(DataFile("EBPlusPlusAdjustPANCAN_IlluminaHiSeq_RNASeqV2.geneExp.tsv"),),
        credential="none: two gigabytes to download",
    ),
)
