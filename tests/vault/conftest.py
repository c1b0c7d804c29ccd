import os
import shutil
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.vault.on_spark import SETTINGS

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator["SparkSession"]:
    """Spark on this machine. Tests that use it are of the group `spark`, so that no two of them run side by side."""
    sql = pytest.importorskip("pyspark.sql", reason="no Spark: pip install 'dpcausal[spark]'")
    if not (shutil.which("java") or os.environ.get("JAVA_HOME")):
        pytest.skip("no Java, which Spark runs on")
    builder = sql.SparkSession.builder.master("local[2]").config(map=SETTINGS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = builder.config("spark.sql.warehouse.dir", str(tmp_path_factory.mktemp("warehouse"))).getOrCreate()
        yield session
        session.stop()
